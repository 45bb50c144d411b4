"""A function's own source in a cell, so that a lesson never pastes library code."""

import inspect

__all__ = ["source"]


def source(function):
    """Return the source of `function`, highlighted in a notebook and plain elsewhere."""
    from IPython.display import Code

    return Code(inspect.getsource(function), language="python")
