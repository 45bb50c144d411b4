"""Direct cases of exercise 18: single methods, and scenes, which are lists of calls.

A scene reaches its state by calls alone, so that its verdict can be repeated in a cell.
"""

import math
import traceback
from contextlib import contextmanager
from typing import NamedTuple

from distlab.checks.kit import Wrong, called
from distlab.checks.tuning_rules import ExpectedScheduler, first_mistake, plain
from distlab.tune import rung_steps

NAN, INF = math.nan, math.inf


class TuningScene(NamedTuple):
    """Calls of a scheduler; sizes: trials, least, most and eta. From `step` on."""

    title: str
    step: int
    sizes: tuple
    calls: list


_NEW = ("next_job",)


def _report(rung=0, **losses):
    return [("on_report", int(name[1:]), rung, loss) for name, loss in losses.items()]


# fmt: off
ROWS = [
    *(("rung_steps", eta, sizes) for *sizes, eta in [
        (1, 9, 3), (1, 1000, 10), (1, 243, 3), (2, 100, 4), (5, 5, 2), (3, 10, 4)]),
    *(("top", eta, losses) for eta, losses in [
        (3, {0: 0.5, 1: 0.4, 2: 0.3}), (3, {0: 0.5, 1: 0.4}), (2, {}),
        (2, {4: 0.3, 2: 0.3, 7: 0.3, 1: 0.9}), (3, {6: 0.3, 8: 0.2, 1: 0.3, 0: 0.9}),
        (2, {0: 0.34, 1: 0.31}), (2, {0: INF, 1: NAN, 2: -INF, 3: NAN}),
        (2, {0: NAN, 1: NAN, 2: 0.7, 3: NAN}), (2, {0: NAN, 1: 0.2, 2: NAN, 3: 0.1}),
        (2, {8: NAN, 5: 0.2, 4: NAN, 3: 0.1, 6: 0.4, 7: 0.3, 1: -1.0})]),
]
_SMALL = 8, 1, 4, 2
_LOST = "on_lost", 0, 0
SCENES = [
    TuningScene("Two trials, with losses 0.34 and 0.31", 1, _SMALL, [
        _NEW, _NEW, *_report(t0=0.34, t1=0.31), _NEW, _NEW]),
    TuningScene("Two trials of a rung may be promoted", 1, _SMALL, [
        *[_NEW] * 4, *_report(t0=0.9, t1=0.8, t2=0.2, t3=0.1), *[_NEW] * 3]),
    TuningScene("Trials of two rungs may be promoted, up to the top rung", 1, _SMALL, [
        *[_NEW] * 4, *_report(t0=0.2, t1=0.5), _NEW, *_report(t2=0.3, t3=0.4), _NEW,
        _NEW, _NEW, *_report(t4=0.1, t5=0.45), *_report(1, t0=0.7, t2=0.6),
        _NEW, _NEW, *_report(1, t4=0.2), *_report(2, t2=0.3), _NEW,
        *_report(2, t4=0.1), *[_NEW] * 3]),
    TuningScene("Copies of a report, with other losses", 2, _SMALL, [
        _NEW, *_report(t0=0.5), *_report(t0=0.4), *_report(t0=0.6), *_report(t0=NAN)]),
    TuningScene("A copy of a report, after the loss 0.0", 2, _SMALL, [
        _NEW, *_report(t0=0.0), *_report(t0=-0.1), _LOST, _NEW]),
    TuningScene("A worker is taken for dead after its report", 2, _SMALL, [
        _NEW, *_report(t0=0.5), _LOST, _LOST, _LOST, _NEW]),
    TuningScene("A lost job reports, and is lost again", 2, _SMALL, [
        _NEW, _NEW, _LOST, *_report(t0=0.3), _LOST, _NEW]),
    TuningScene("Two lost jobs, one of them named twice", 2, _SMALL, [
        _NEW, _NEW, ("on_lost", 1, 0), _LOST, ("on_lost", 1, 0), *[_NEW] * 3]),
    TuningScene("A job is lost three times, and reports after that", 2, _SMALL, [
        _NEW, *[_LOST, _NEW] * 2, _LOST, *_report(t0=0.3), *_report(t0=NAN),
        _LOST, _NEW]),
    TuningScene("Checkpoints, one of them late", 3, (8, 10, 40, 2), [
        _NEW, _NEW, ("on_saved", 0, 7), _LOST, _NEW, ("on_saved", 0, 4), _LOST, _NEW,
        *_report(t0=0.1, t1=0.2), _NEW]),
    TuningScene("Is a job wanted?", 3, _SMALL, [
        _NEW, _NEW, ("wanted", 0, 0), *_report(t0=0.0), ("wanted", 0, 0),
        ("on_lost", 1, 0), ("wanted", 1, 0), *_report(t1=NAN), ("wanted", 1, 0)]),
]
# fmt: on


# ---- in a process --------------------------------------------------------------------


def ask(scheduler, log, name, *args):
    """Call a method and log its answer, or what it changed, as plain data."""
    job, waited = args[:2], 0
    if name == "on_lost":
        waited = list(scheduler.lost).count(job)
    try:
        said = called(getattr(scheduler, name), *args)
    except Exception as error:
        if type(error) is not NotImplementedError:  # a hint knows its words
            call = f"{name}({', '.join(map(repr, args))})"
            error.args = (f"{error}. Call {len(log) + 1}: {call}",)
        raise
    if name.startswith("on_") and name != "on_saved":
        said = scheduler.losses[args[1]].get(args[0])
    if name == "on_lost":
        said = said, max(0, list(scheduler.lost).count(job) - waited)
    if name == "wanted" and said in (0, 1):
        said = bool(said)
    log.append((name, args, plain(said)))
    return log[-1][2]


def answers(make, row):
    """Return the log of one call of `rung_steps` or of `top`."""
    name, eta, given = row
    log = []
    with _explained(log, lambda: row_cell(make, row)):
        if name == "rung_steps":
            found = called(make, 9, *given, eta).rungs
        else:
            scheduler = called(make, 9, 1, eta**2, eta)
            scheduler.losses[0] = dict(given)
            found = called(scheduler.top, 0)
        found = [*found] if isinstance(found, list | tuple) else repr(found)
        log.append((name, given, found))
    return log


def play(make, scene):
    """Return the log of a scene, up to a method that is not written."""
    log = []
    with _explained(log, lambda: scene_cell(make, scene, len(log) + 1)):
        scheduler = called(make, *scene.sizes)
        for call in scene.calls:
            ask(scheduler, log, *call)
    return log


@contextmanager
def _explained(log, cell):
    """Log a method that is not written; add the cell to any other error."""
    try:
        yield
    except NotImplementedError as error:
        if str(error) not in ("", "write this step"):
            raise  # a call of the library's own
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        log.append(("unwritten", (frame.f_code.co_name,), None))
    except Exception as error:
        error.args = (f"{error}. To see it in a cell: {'; '.join(cell())}",)
        raise


# ---- the comparison ------------------------------------------------------------------


def compare(make, step, rows, scenes, contract):
    """Raise at the first wrong answer, else at the first method not written."""
    for row, log in zip(ROWS, rows, strict=True):
        _compare_row(make, row, *log[0], contract)
    for scene, log in zip(SCENES, scenes, strict=False):  # those of later steps
        trials, *sizes = scene.sizes
        twin = ExpectedScheduler(trials, rung_steps(*sizes), sizes[2], step, contract)
        if wrong := first_mistake(twin, log):
            cell = "\n  ".join(_lines(scene_cell(make, scene, wrong.call)))
            found = f"{scene.title}: {wrong.found}\nTo see it in a cell:\n  {cell}"
            raise Wrong(found, kind=wrong.kind)
    for name, args, _ in (log[-1] for log in [*rows, *scenes]):
        if name == "unwritten":
            raise Wrong(
                f"`{args[0]}` is not written yet. All answers up to its first call are "
                "as expected.",
                kind=name,
            )


def _compare_row(make, row, name, given, yours, contract):
    if name == "unwritten":
        return
    if name == "top":
        right = ExpectedScheduler(9, [1], row[1], 1, contract).top(given)
    else:
        right = rung_steps(*given, row[1])
    if yours != right:
        cell = "\n  ".join(_lines(row_cell(make, row)))
        found = f"`{name}`: expected {right}; yours is {yours}."
        raise Wrong(f"{found}\nTo see it in a cell:\n  {cell}", kind=name)


def row_cell(make, row):
    """Return the statements that call one method by hand."""
    name, eta, given = row
    if name == "rung_steps":
        return [f"{_made(make, (9, *given, eta))}.rungs"]
    losses = _source(given)
    made = _made(make, (9, 1, eta**2, eta))
    return [f"it = {made}", f"it.losses[0] = {losses}", "it.top(0)"]


def scene_cell(make, scene, calls):
    """Return the statements of a scene's first calls; the last one shows its effect."""
    made = [f"it = {_made(make, scene.sizes)}"]
    for name, *args in scene.calls[:calls]:
        made.append(f"it.{name}({', '.join(map(_source, args))})")
    last = scene.calls[calls - 1][0]
    return [*made, *["it.losses, it.lost"] * last.startswith("on_")]


def _made(make, sizes):
    return f"{getattr(make, '__name__', 'Scheduler')}{tuple(sizes)}"


def _source(value):
    return repr(value).replace("nan", "math.nan").replace("inf", "math.inf")


def _lines(statements):
    """Return the statements as lines of a cell, several on a line."""
    lines = [""]
    for each in statements:
        if len(lines[-1] + each) > 76:
            lines.append("")
        lines[-1] += f"{each}; "
    return [line.removesuffix("; ") for line in lines]
