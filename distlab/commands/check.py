"""`distlab check`: the verdict on a history of a store, from a file."""

from html import escape
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab import show
from distlab.agree import CasRegister, KeyValue, Lock, Queue, Set, check_linearizable
from distlab.calls.progress import Progress
from distlab.errors import DistlabError, InvalidArgument
from distlab.history import History, described
from distlab.history.edn import NotEdn, read_edn
from distlab.show.assets import document

__all__ = ["check"]

_MODELS = {
    "register": CasRegister,
    "cas-register": CasRegister,
    "key-value": KeyValue,
    "set": Set,
    "queue": Queue,
    "lock": Lock,
    "mutex": Lock,
}
_WITH_INITIAL = ("register", "cas-register", "key-value")
_COLOURS = {"ok": "green", "violated": "red", "inconclusive": "yellow"}
_STATUS = {"ok": 0, "violated": 1, "inconclusive": 2}
_NOT_JUDGED = 3
_MOST = 20  # operations of an explanation that are printed


def check(
    path: Annotated[
        Path,
        typer.Argument(help="Jepsen's EDN or log; .jsonl is one event a line."),
    ],
    model: Annotated[str, typer.Option(help=", ".join(_MODELS) + ".")] = "register",
    initial: Annotated[
        str | None,
        typer.Option(
            help="The register's first value, such as 0; a read of nil in Jepsen's "
            "EDN then says nothing, as in Knossos."
        ),
    ] = None,
    fail_observed: Annotated[
        bool,
        typer.Option(
            "--fail-observed",
            help="A failed cas found another value, as in Porcupine's etcd logs.",
        ),
    ] = False,
    independent: Annotated[
        bool | None,
        typer.Option(
            help="Jepsen's values are pairs of key and value; else seen from all."
        ),
    ] = None,
    within: Annotated[float, typer.Option(help="Seconds of processor time.")] = 10,
    to: Annotated[
        Path | None, typer.Option(help="An .html file to write, with the picture.")
    ] = None,
) -> None:
    """Check a history for linearizability.

    The exit status is 0 if it is ok, 1 if violated, 2 if inconclusive, 3 if it cannot
    be judged, such as a file that cannot be read.
    """
    try:
        judged = _model(model, initial)
        if path.suffix == ".jsonl":
            history = History.read(path)
        else:
            history = History.read_jepsen(
                path,
                fail_observed=fail_observed,
                nil_unknown=initial not in (None, "nil"),
                independent=independent,
            )
        with Progress(f"checking {len(history):,} operations"):
            verdict = check_linearizable(history, judged, within_s=within)
        lines = _lines(verdict, path)
        if to is not None:
            _write(to, verdict, lines, path.name)
    except DistlabError as error:
        Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
        raise typer.Exit(_NOT_JUDGED) from None
    console = Console(highlight=False)
    console.print(Text(lines[0], f"bold {_COLOURS[verdict.answer]}"), soft_wrap=True)
    for line in lines[1:]:
        console.print(Text(line), soft_wrap=True)
    if to is not None:
        console.print(f"picture: {to}", soft_wrap=True)
    raise typer.Exit(_STATUS[verdict.answer])


def _model(name, initial):
    if name not in _MODELS:
        raise InvalidArgument(
            f"there is no model {name!r}. These are there: {', '.join(_MODELS)}."
        )
    if initial is None:
        return _MODELS[name]()
    if name not in _WITH_INITIAL:
        raise InvalidArgument(
            f"--initial is for {', '.join(_WITH_INITIAL)}; a {name} starts empty."
        )
    try:
        ((_, value),) = read_edn(initial)
    except (NotEdn, ValueError):
        raise InvalidArgument(
            f"--initial is {initial!r}; give one value, such as 0 or '\"text\"'."
        ) from None
    return _MODELS[name](value)


def _lines(verdict, path):
    """Return the verdict, its reason, and the few operations that are enough for it."""
    lines = [f"{verdict.answer}: {verdict.model}", verdict.why]
    few = list(verdict.smallest or ())
    for operation in few[:_MOST]:
        where = verdict.history.where(operation).replace(f" of {path}", "")
        lines.append(f"    {described(operation)}{where}")
    if len(few) > _MOST:
        lines.append(f"    and {len(few) - _MOST} more")
    return lines


def _write(to, verdict, lines, name):
    picture = show.history(verdict)._repr_mimebundle_()["text/html"]
    words = f"<h1>{escape(name)}</h1><pre>{escape(chr(10).join(lines))}</pre>"
    try:
        to.write_text(document(words + picture, f"{name}: {verdict.answer}"), "utf-8")
    except OSError as error:
        raise InvalidArgument(f"{to} cannot be written: {error.strerror}.") from None
