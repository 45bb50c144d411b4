"""The notebook's cells: their titles and lines.

A failure report names the cell and shows its line. In the notebook's own process
IPython has both; any other process has what it was given with `learn`.
"""

import linecache
import sys

__all__ = ["are_described", "cells", "learn", "title_of"]

_described: dict[str, str] = {}


def cells() -> dict[str, tuple[str, list[str]]]:
    """Return file name -> (title such as "Cell In[3]", lines) of each cell that ran."""
    found = {name: title_of(name) for name in linecache.cache}
    return {n: (title, linecache.getlines(n)) for n, title in found.items() if title}


def learn(described: dict[str, tuple[str, list[str]]]) -> None:
    """Use from now on the cells of another process, as its `cells` returned them."""
    for name, (title, lines) in described.items():
        _described[name] = title
        linecache.cache[name] = sum(map(len, lines)), None, list(lines), name


def are_described() -> bool:
    """Return True if the cells are another process's, and so are all failures."""
    return bool(_described)


def title_of(name: str) -> str:
    """Return the notebook's title of the cell with this file name; "" if it is none."""
    if name in _described:
        return _described[name]
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    words = shell.compile.format_code_name(name) if shell is not None else None
    return " ".join(words) if words else ""
