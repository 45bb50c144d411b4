"""Stubs: functions of a lesson that the learner writes, with one to fall back on.

    @stub(fallback=Quorum.newest)
    def newest(replies):
        '''Return the value with the highest version.'''
        ...

A body of nothing but its docstring and `...` is a stub that is not written yet. The
cells below then run the fallback, so that a lesson also runs from top to bottom.
"""

import dis
import inspect
import textwrap
from collections.abc import Callable
from html import escape

from distlab.calls.notebook_frontend import cell_number, show
from distlab.errors import InvalidArgument
from distlab.learner.predictions.kernel_bridge import said_style

__all__ = ["stub"]

_EMPTY = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}


def stub(*, fallback: Callable) -> Callable:
    """Mark a function for the learner to write; until then use `fallback` instead.

    It shows which of the two the cells below run, with the fallback's source, folded,
    for comparison.

    Raises: InvalidArgument if `fallback` cannot be called.
    """
    if not callable(fallback):
        raise InvalidArgument(
            f"stub needs a function to fall back on, and got {fallback!r}. "
            "For example: @stub(fallback=ring_all_reduce)"
        )

    def chosen(function):
        written = not _is_empty(function)
        if written:
            said = f"The cells below run your {function.__name__}."
        else:
            said = f"{function.__name__} is not written yet, so distlab's is used."
        if cell_number() is None:
            print(said)
        else:
            show(_bundle(said, fallback, " written" * written))
        return function if written else fallback

    return chosen


def _is_empty(function):
    """Return True if a function does nothing, and returns None."""
    return all(
        step.opname in _EMPTY and (step.opname == "RESUME" or step.argval is None)
        for step in dis.get_instructions(function)
    )


def _bundle(said, fallback, kind):
    source = escape(textwrap.dedent(inspect.getsource(fallback)))
    html = (
        f'{said_style()}<details class="distlab-said{kind}"><summary>{escape(said)} '
        f"<u>Show distlab's</u></summary><pre>{source}</pre></details>"
    )
    return {"text/html": html, "text/plain": said}
