"""Style sheets and scripts of forms: predictions, comparisons, cards.

Importing is light: the theme, which loads all pictures, is imported at the first form.
"""

from functools import cache

__all__ = ["form_script", "form_style", "said_style"]

_PACKAGE = "distlab.learner.predictions"


@cache
def form_style(root: str, package: str, name: str) -> str:
    """Return the CSS of a form: the shared rules, for its `root`, and its own file."""
    from distlab.show.assets import read, style, themed

    shared = read(_PACKAGE, "forms.css").replace("ROOT", root)
    return style(themed(root), shared, read(package, name))


@cache
def form_script(package: str, *names: str) -> str:
    """Return a script of these files that can reach the kernel or save in a page."""
    from distlab.show.assets import read, script

    shared = read("distlab.show.player", "save.js"), read(_PACKAGE, "tell.js")
    return script(*shared, *(read(package, name) for name in names))


@cache
def said_style() -> str:
    """Return the CSS of a comparison's line, and of the details folded below it."""
    from distlab.show.assets import read, style, themed

    return style(themed(".distlab-said"), read(_PACKAGE, "said.css"))
