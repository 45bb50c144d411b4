"""The bridge from a form in a page to the kernel: typed values reach a function here.

    page:    distlabTell({to: "3f2a", value: "8"})     ──▶    _receivers["3f2a"]("8")

Forms are plain HTML, which a saved notebook shows without a kernel. They reach one
through a widget that draws nothing: once the page has loaded it, its output is erased,
so no saved notebook contains it. Colab puts each output into a frame of its own, and
offers a function for calls to the kernel.

`form_style` and `form_script` are the forms' style sheets and scripts. Importing is
light: the theme, which loads all pictures, is imported at the first form.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

from distlab.calls.notebook_frontend import person_is_there, show
from distlab.errors import ExtraMissing
from distlab.show.assets import widget_view

__all__ = ["form_script", "form_style", "open_bridge", "receive", "said_style"]

_receivers: dict[str, Callable] = {}
_shown = []
_GONE = {"text/html": "<style></style>", "text/plain": ""}
_SCRIPT = """
export default {
  render({ model }) {
    window.distlabTell = (message) => model.send(message);
    model.send({ to: "" });
  },
};
"""


def receive(key: str, function: Callable[[object], None]) -> None:
    """Register `function` for the values that a page sends to `key`."""
    _receivers[key] = function


def open_bridge() -> None:
    """Connect this cell's page to the kernel; do nothing in an unattended notebook."""
    if not person_is_there():
        return
    if "google.colab" in sys.modules:
        _colab()
    elif bridge := _widget():
        _shown.append(show(widget_view(bridge) | _GONE))


@cache
def _widget():
    """Return this kernel's only widget, or None where anywidget is missing."""
    try:
        from anywidget import AnyWidget
    except ImportError:
        print(ExtraMissing.of("predict", ["anywidget"], "notebook"))  # once
        return None

    class Bridge(AnyWidget):
        _esm = _SCRIPT

    bridge = Bridge()
    bridge.on_msg(lambda _, message, buffers: _heard(message))
    return bridge


@cache
def _colab():
    output = import_module("google.colab.output")  # there, and nowhere else
    output.register_callback("distlab.tell", _heard)


def _heard(message):
    """Pass a message on to its receiver; one without `to` reports the page as ready."""
    while not message.get("to") and _shown:
        _shown.pop().update(_GONE, raw=True)
    if message.get("to") in _receivers:
        _receivers[message["to"]](message.get("value"))


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
