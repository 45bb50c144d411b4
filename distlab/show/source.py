"""Source of a function in a cell, so that a lesson never pastes library code."""

import inspect
from collections.abc import Callable

__all__ = ["source"]


def source(function: Callable):
    """Return the source of `function`, highlighted in a notebook."""
    from IPython.display import Code

    return Code(inspect.getsource(function), language="python")
