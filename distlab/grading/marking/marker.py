"""Marks one grade cell: runs its source on what the submission's kernel has packed.

    Marking ── {"files", ...} ──▶ marker ── opens a jail, with nothing to hide yet
            ◀── {"isolation"} ──
            ── source, packed ──▶ the checks run here, what is packed in the jail
            ◀── outputs, points, processor time ──

Nothing that is packed is opened here.
"""

import ast
import base64
import contextlib
import importlib
import io
import json
import os
import traceback
from functools import partial

import distlab.grading
from distlab.calls.travel import Packed
from distlab.cells import learn
from distlab.grading.marking.paper import Listed, Paper, text, visible
from distlab.grading.salt import new_salt
from distlab.grading.verdict import grade, grade_each
from distlab.jail import Jail
from distlab.processes import Child
from distlab.processes.child import on_its_own
from distlab.processes.memory import limit_memory

__all__ = ["main", "marked"]

_MOST_SAID, _MEMORY_BYTES = 10_000, 2**31


def main(child: Child) -> None:
    """Mark the one cell that the owner's second frame describes."""
    on_its_own()
    told = json.loads(child.receive())
    with Jail(isolation=told["isolation"], files=told["files"]) as trial:
        child.send(json.dumps({"isolation": trial.isolation}).encode())
        task = json.loads(child.receive())
        new_salt()
        learn(_cells(task["cells"]))
        limit_memory(_MEMORY_BYTES)  # what ranks tell may be made to need more
        with trial.inhabit():
            answer = marked(task)
        answer["exceeded"] = trial.exceeded()
    answer["busy_s"] = sum(os.times()[:4])  # its own, and all that the jail was
    child.send(json.dumps(answer).encode())


def marked(task: dict) -> dict:
    """Return {"outputs", "earned", "error"} of a grade cell.

    task: source, delimiters of hidden regions, imports, constants, and what is packed.
    error: "" or what went wrong with the cell itself, for the instructor's log.
    """
    things = {
        name: Packed(base64.b64decode(data), name)
        for name, data in task["packed"].items()
    }
    paper, said = Paper(_shown(task, things)), io.StringIO()
    earned, error = 0.0, ""
    try:
        with contextlib.redirect_stdout(said):
            space = _space(task, things, grade, grade_each, sheet=paper)
            earned = _value(task["source"], space)
        if type(earned) is not float:
            earned, error = 0.0, f"its value is {earned!r}, and not what grade returns"
    except BaseException:
        earned, error = 0.0, traceback.format_exc()
    printed = said.getvalue()[:_MOST_SAID]
    outputs = ([text(printed)] if printed else []) + paper.outputs
    return {"outputs": outputs, "earned": earned, "error": error}


def _shown(task, things):
    """Return the checks that the source makes without its hidden regions."""
    listed = Listed()
    source = visible(task["source"], *task["delimiters"])
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        _value(source, _space(task, things, listed.grade, listed.grade))
    return listed.checks


def _space(task, things, all_of, each_of, **options):
    """Return the namespace in which a cell runs."""
    own = {name: getattr(distlab.grading, name) for name in distlab.grading.__all__}
    for name, (module, inner) in task["imports"].items():
        found = importlib.import_module(module)
        own[name] = getattr(found, inner) if inner else found
    for name, thing in own.items():
        if thing in (grade, grade_each):
            own[name] = partial(all_of if thing is grade else each_of, **options)
    said = task["constants"]
    constants = {name: ast.literal_eval(value) for name, value in said.items()}
    return {"__name__": "cell", **own, **constants, **things}


def _value(source, space):
    """Run a cell; return what its last line gives."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "the grade cell", "exec"), space)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "the grade cell", "eval"), space)


def _cells(told):
    """Return the cells that a kernel told of, if they are what cells are.

    A kernel may tell anything; what it says must not stand for a file's lines.
    """
    return {
        name: (str(title)[:50], [str(line) for line in lines])
        for name, (title, lines) in told.items()
        if not os.path.exists(name)
    }
