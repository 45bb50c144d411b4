"""`distlab explain`: a diagnosis of a hanging job, from its notes or its dumps."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.diagnosis.flight import explain as explained
from distlab.diagnosis.flight.reading import LOG_SUFFIXES, files_of
from distlab.diagnosis.flight.watchdog import has_watchdog, read_logs
from distlab.errors import InvalidArgument

__all__ = ["explain"]

_FAULT = 2  # the status where a fault was found
_INPUT = Path("-")


def explain(
    place: Annotated[
        list[Path],
        typer.Argument(
            help="Folders that a watched job keeps, one of each node; a folder of "
            "dumps, one per rank, or folder/prefix; or logs of NCCL's watchdog, - for "
            "standard input."
        ),
    ],
    page: Annotated[
        Path | None, typer.Option(help="An .html file to write, with lanes of dumps.")
    ] = None,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="Show the stacks of watched ranks here.")
    ] = False,
) -> None:
    """Find the rank that a hanging or dead job of torch.distributed waits for.

    The status is 2 where a fault was found, 0 where none was, 1 for bad input.
    """
    console = Console()
    folders = [each for each in place if each.is_dir()]
    if any(next(each.rglob("rank-*.json"), None) for each in folders):
        said, found = _watched(folders, stacks)
    elif not _has_dumps(place[0]) and (logs := _logs(place)):
        with contextlib.ExitStack() as opened:
            log = read_logs([(p.name, _opened(p, opened)) for p in logs])
        said, found = str(log), log.found
    elif len(place) > 1:
        raise InvalidArgument("dumps are read from one folder: copy them together.")
    else:
        with Progress(f"reading {place[0]}"):
            dumps = explained(place[0])
        said, found = str(dumps), bool(dumps.faults)
        if page is not None:
            page.write_text(dumps.html(), encoding="utf-8")
    verdict, _, rest = said.partition("\n")
    console.print(Text(verdict, "bold"), soft_wrap=True)
    console.print(Text(rest), soft_wrap=True)
    if page is not None and page.exists():
        console.print(f"\nlanes: {page}", highlight=False)
    if found:
        raise typer.Exit(_FAULT)


def _has_dumps(place):
    """Return True if a place has dumps, which prove what a log beside them suspects."""
    try:
        return not place.is_file() and bool(files_of(place))
    except InvalidArgument:
        return False


def _logs(places):
    """Return the files that are logs with lines of NCCL's watchdog; "-" is one."""
    files = [each for each in places if each.is_file()]
    for folder in (each for each in places if each.is_dir()):
        files += sorted(f for f in folder.rglob("*") if f.suffix in LOG_SUFFIXES)
    logs = [file for file in files if has_watchdog(file)]
    return [*logs, *(each for each in places if each == _INPUT)]


def _opened(path, opened):
    """Return the lines of a log, or of standard input, as they are read."""
    if path == _INPUT:
        return sys.stdin.buffer
    return opened.enter_context(path.open("rb"))


def _watched(folders, stacks):
    """Return the diagnosis of a watched job; torch is loaded for it alone."""
    with Progress("reading the ranks' notes"):
        from distlab.launch.watched import WatchedJob, find_ranks

        ranks = find_ranks(folders)
        if not ranks:
            raise InvalidArgument(f"no rank's notes in {folders[0]} can be read.")
        return WatchedJob(ranks).explain(stacks=stacks)
