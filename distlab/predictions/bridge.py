"""From a form in a page to the kernel: what is typed there arrives in a function here.

    page:    distlabTell({to: "3f2a", value: "8"})     ──▶    _receivers["3f2a"]("8")

Forms are plain HTML, which a saved notebook shows without a kernel. They reach one
through a widget that draws nothing: as soon as the page has it, its output is erased,
and stays in no notebook. Colab, where each output is a frame of its own, has a function
for it.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

from distlab.calls.notebook import person_is_there, show
from distlab.errors import ExtraMissing
from distlab.show.assets import widget_view

__all__ = ["open_bridge", "receive"]

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
    """Have `function` called with each value that a page sends to `key`."""
    _receivers[key] = function


def open_bridge() -> None:
    """Give the page that runs this cell a way to send; without a person do nothing."""
    if not person_is_there():
        return
    if "google.colab" in sys.modules:
        _colab()
    elif bridge := _widget():
        _shown.append(show(widget_view(bridge) | _GONE))


@cache
def _widget():
    """Return the one widget of this kernel, or None where anywidget is missing."""
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
    """Hand on what a page sent; without a receiver it says that it is there."""
    while not message.get("to") and _shown:
        _shown.pop().update(_GONE, raw=True)
    if message.get("to") in _receivers:
        _receivers[message["to"]](message.get("value"))
