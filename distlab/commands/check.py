"""`distlab check`: the verdict on a history of a store, from a file."""

from html import escape
from itertools import zip_longest
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
from distlab.history.edn import read_edn
from distlab.show.assets import document

__all__ = ["check"]

_WITH_INITIAL = ("register", "cas-register", "key-value")
_MODELS = dict.fromkeys(_WITH_INITIAL[:2], CasRegister) | {"key-value": KeyValue}
_MODELS |= {"set": Set, "queue": Queue, "lock": Lock, "mutex": Lock}
_COLOURS = {"ok": "green", "violated": "red", "inconclusive": "yellow"}
_STATUS = {"ok": 0, "violated": 1, "inconclusive": 2}
_NOT_JUDGED = 3
_INITIAL = "The first value, such as 0; then a read of nil says nothing, as in Knossos."
_FAIL = "A failed cas found another value, as in etcd's logs in Porcupine's tests."
_MOST = 20  # operations of an explanation that are printed


def check(
    path: Annotated[Path, typer.Argument(help="Jepsen's EDN or log, or a .jsonl.")],
    model: Annotated[str, typer.Option(help=", ".join(_MODELS) + ".")] = "register",
    initial: Annotated[str | None, typer.Option(help=_INITIAL)] = None,
    fail_observed: Annotated[bool, typer.Option("--fail-observed", help=_FAIL)] = False,
    within: Annotated[float, typer.Option(help="Seconds of processor time.")] = 10,
    to: Annotated[Path | None, typer.Option(help="A page to write, .html.")] = None,
) -> None:
    """Check whether a history of a store is linearizable.

    The exit status is 0 for ok, 1 for violated, 2 for inconclusive, and 3 if it cannot
    be judged, such as a file that cannot be read.
    """
    try:
        judged = _model(model, initial)
        if path.suffix == ".jsonl":
            history = History.read(path)
        else:
            unknown = initial not in (None, "nil")
            options = {"fail_observed": fail_observed, "nil_unknown": unknown}
            history = History.read_jepsen(path, **options)
        with Progress(f"checking {len(history):,} operations"):
            verdict = check_linearizable(history, judged, within_s=within)
        lines = _lines(verdict, path)
        if to is not None:
            _write(to, verdict, lines, path.name)
    except DistlabError as error:
        Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
        raise typer.Exit(_NOT_JUDGED) from None
    colours = [f"bold {_COLOURS[verdict.answer]}"]
    for line, colour in zip_longest(lines, colours, fillvalue=""):
        Console(highlight=False).print(Text(line, colour), soft_wrap=True)
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
        (value,) = read_edn(initial)
    except ValueError:
        raise InvalidArgument(
            f"--initial is {initial!r}; give one value, such as 0 or '\"text\"'."
        ) from None
    return _MODELS[name](value)


def _lines(verdict, path):
    """Return the verdict, its reason, and the few operations that are enough for it."""
    few = list(verdict.smallest or ())
    lines = [f"{verdict.answer}: {verdict.model}", verdict.why]
    for operation in few[:_MOST]:
        where = verdict.history.where(operation).replace(f" of {path}", "")
        lines.append(f"    {described(operation)}{where}")
    return lines + [f"    and {len(few) - _MOST} more"] * (len(few) > _MOST)


def _write(to, verdict, lines, name):
    picture = show.history(verdict)._repr_mimebundle_()["text/html"]
    said = escape("\n".join(lines))
    words = f'<h1>{escape(name)}</h1><pre style="white-space:pre-wrap">{said}</pre>'
    try:
        to.write_text(document(words + picture, f"{name}: {verdict.answer}"), "utf-8")
    except OSError as error:
        raise InvalidArgument(f"{to} cannot be written: {error.strerror}.") from None
