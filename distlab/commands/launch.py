"""`distlab launch`: a torch.distributed script of your own, monitored as it runs."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from typer import Argument, Option
from typer.core import TyperCommand

from distlab.errors import InvalidArgument
from distlab.faults import Hang, Kill, Slow
from distlab.launch.script import Script, ScriptRun, launch_script

__all__ = ["COMMAND", "launch"]

_ALIASES = {"-r": "--redirects", "-t": "--tee", "--module": "-m"}
_ALIASES |= {"--nproc-per-node": "-n", "--ranks": "-n"}
# torchrun's options that mean nothing where all ranks are on this machine.
_IGNORED = {"--standalone"}
_IGNORED_WITH_VALUE = {"--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf"}
_IGNORED_WITH_VALUE |= {"--master-addr", "--master-port", "--local-addr", "--role"}
_IGNORED_WITH_VALUE |= {"--monitor-interval", "--start-method", "--signals-to-handle"}
_IGNORED_WITH_VALUE |= {"--numa-binding", "--event-log-handler", "--logs-specs"}
_ONE_MACHINE = "distlab launch runs the ranks of one machine; start it with -n alone."
_LOGS = "all output is shown, each line with its rank; --log-dir DIR keeps it in files."
# Its other options: what to do instead, and the values that need nothing done.
_REFUSED = {
    "--nnodes": (_ONE_MACHINE, "1", "1:1"),
    "--node-rank": (_ONE_MACHINE, "0"),
    "--max-restarts": ("nothing is restarted: the first failure is reported.", "0"),
    "--redirects": (_LOGS, "0", "3"),
    "--tee": (_LOGS, "0", "3"),
    "--local-ranks-filter": (_LOGS,),
}
_REFUSED_FLAGS = {
    "--no-python": "the target is a Python file or, with -m, a module.",
    "--run-path": "leave it away: ranks are forks that have imported torch.",
    "--virtual-local-rank": "set LOCAL_RANK in the script.",
}


class _Launch(TyperCommand):
    """The command with torchrun's options: all that follows the script is the script's.

    Where no option, or only -m, comes first, options may follow the script.
    """

    def parse_args(self, ctx, args):
        """Parse the command line, with what is the script's behind a "--"."""
        rest = list(args)
        own = self._take_options(rest)
        if rest and set(own) <= {"-m"}:
            target = rest.pop(0)
            own += self._take_options(rest, ours_only=True)
            rest.insert(0, target)
        if rest[1:2] == ["--"]:
            del rest[1]
        return super().parse_args(ctx, [*own, "--", *rest] if rest else own)

    def _take_options(self, rest, ours_only=False):
        """Remove the options at the front of `rest`; return those of this command."""
        flags = {o: p.is_flag for p in self.params for o in p.opts if o[0] == "-"}
        flags["--help"], own = True, []
        while rest and rest[0].startswith("-") and rest[0] != "--":
            name, given, value = rest[0].partition("=")
            if re.fullmatch(r"-n\d+", name):
                name, given, value = "-n", "=", name[2:]
            name = name if name[:2] != "--" else name.replace("_", "-")
            name = _ALIASES.get(name, name)
            if ours_only and name not in flags:
                break
            del rest[0]
            alone = flags.get(name, name in _IGNORED or name in _REFUSED_FLAGS)
            if not (alone or given):
                value = rest.pop(0) if rest else ""
            if name not in flags:
                _accept(name, value)
            else:
                own += [name] if alone else [name, value]
        return own


COMMAND = _Launch


def _accept(name, value):
    """Let an option of torchrun pass that changes nothing here.

    Raises: InvalidArgument for any other, with what to do.
    """
    advice, *harmless = _REFUSED.get(name, (_REFUSED_FLAGS.get(name),))
    if name in _IGNORED | _IGNORED_WITH_VALUE or value in harmless:
        return
    advice = advice or "not an option; `distlab launch --help` lists them."
    raise InvalidArgument(f"{name} {value}".strip() + f": {advice}")


_Times = list[str] | None
_File = Path | None


def launch(
    script: Annotated[str, Argument(help="A Python file; with -m, a module.")],
    args: Annotated[_Times, Argument(help="What the script is given.")] = None,
    ranks: Annotated[str, Option("-n", help="How many; also --nproc-per-node.")] = "2",
    module: Annotated[bool, Option("-m", help="Run a module.")] = False,
    cpu: Annotated[
        bool, Option("--cpu", help="A CPU stands in for GPUs, gloo for NCCL.")
    ] = False,
    log_dir: Annotated[_File, Option(help="Folder for the output, by rank.")] = None,
    report: Annotated[
        _File, Option("--json", help="File for the failure report, as JSON.")
    ] = None,
    kill: Annotated[
        _Times, Option(help="Such as 2@100: rank 2 dies at its 100th collective.")
    ] = None,
    hang: Annotated[_Times, Option(help="Such as 2@100: it hangs there.")] = None,
    slow: Annotated[
        _Times, Option(help="Such as 1x4: rank 1 takes four times as long.")
    ] = None,
    trace: Annotated[_File, Option(help="File for the trace, for Perfetto.")] = None,
    page: Annotated[_File, Option(help="File for a page that plays the run.")] = None,
) -> None:
    """Run a torch.distributed script as torchrun does; report why it hangs or fails.

    Each line comes with its rank. A rank that skipped a collective, called another one
    or waits for ever is named as soon as all wait. The status is 1 if a rank failed.
    torchrun's command line works: --standalone --nproc-per-node 4 train.py --lr 3
    """
    faults = [*_planned(kill, "@", Kill, int), *_planned(hang, "@", Hang, int)]
    faults += _planned(slow, "x", Slow, float)
    for path in filter(None, (trace, page, report)):
        if not path.parent.is_dir():
            raise InvalidArgument(f"there is no folder {path.parent} for {path.name}.")
    console = Console(stderr=True, highlight=False)
    how = {"faults": faults, "whole_trace": bool(trace or page), "cpu": cpu}
    how |= {"log_dir": log_dir, "report": lambda run: _print(run, console)}
    run = launch_script(Script(script, args or [], module), _number(ranks), **how)
    for sentence in run.unmet:
        console.print(sentence, soft_wrap=True)
    _write(run, trace, page, console)
    if report:
        report.write_text(json.dumps(_facts(run), indent=1), encoding="utf-8")
    if run.failure or run.signal:
        raise typer.Exit(1)


def _number(ranks):
    """Return the number of ranks; torchrun's "auto" means the number of processors."""
    if ranks in ("auto", "cpu", "gpu"):
        return os.cpu_count()
    if not ranks.isdecimal():
        raise InvalidArgument(f"-n {ranks}: write it such as -n 4.")
    return int(ranks)


def _print(run, console):
    """Print the diagnosis; on a signal, before the ranks end."""
    kind = type(run.failure).__name__
    kind = f"At {signal.Signals(run.signal).name}" if run.signal else kind
    console.print(Text(f"\n{kind}: {run.failure}", "red"), soft_wrap=True)


def _facts(run):
    """Return the failure report in JSON's types."""
    return {
        "failure": type(run.failure).__name__ if run.failure else None,
        "rank": getattr(run.failure, "rank", None),
        "cause": str(run.failure or "").partition("\n")[0],
        "report": str(run.failure or ""),
        "signal": signal.Signals(run.signal).name if run.signal else None,
        "ranks": run.ranks,
        "notes": run.unmet,
    }


def _planned(asked: list[str] | None, between: str, fault: type, number: Callable):
    """Yield the faults of a command-line option, such as "2@100"."""
    for text in asked or []:
        found = re.fullmatch(rf"(\d+){between}(\d+(?:\.\d+)?)", text)
        if not found:
            name = fault.__name__.lower()
            example = "1x4" if between == "x" else "2@100"
            raise InvalidArgument(f"--{name} {text}: write it such as {example}.")
        try:
            yield fault(int(found[1]), number(found[2]))
        except ValueError:
            raise InvalidArgument(f"{text}: {found[2]} is no whole number.") from None


def _write(run: ScriptRun, trace: Path | None, page: Path | None, console: Console):
    if not run.trace.events and (trace or page):
        console.print("No rank used torch.distributed: the trace is empty.")
    if trace:
        run.trace.to_perfetto(trace)
        console.print(f"{trace}: {len(run.trace.events):,} events, for ui.perfetto.dev")
    if page:
        from distlab.show import save

        save(run.trace, page)
        console.print(f"{page}: opens in a browser")
