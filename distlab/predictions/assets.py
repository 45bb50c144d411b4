"""Style and script of what asks a learner: predictions, comparisons, cards.

Asking is light: the theme, which loads all pictures, waits until something is shown.
"""

from functools import cache

__all__ = ["form_script", "form_style", "said_style"]

_PACKAGE = "distlab.predictions"


@cache
def form_style(root: str, package: str, name: str) -> str:
    """Return the style of a form: what all have, for its `root`, and its own file."""
    from distlab.show.assets import read, style, themed

    shared = read(_PACKAGE, "forms.css").replace("ROOT", root)
    return style(themed(root), shared, read(package, name))


@cache
def form_script(package: str, *names: str) -> str:
    """Return files as a script that can reach the kernel, or keep things in a page."""
    from distlab.show.assets import read, script

    shared = read("distlab.show.film", "save.js"), read(_PACKAGE, "tell.js")
    return script(*shared, *(read(package, name) for name in names))


@cache
def said_style() -> str:
    """Return the style of a line, and of what unfolds below it."""
    from distlab.show.assets import read, style, themed

    return style(themed(".distlab-said"), read(_PACKAGE, "said.css"))
