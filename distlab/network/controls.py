"""Controls in a notebook: a box of widgets, whose buttons keep the keyboard's focus."""

from collections.abc import Callable, Iterable
from typing import Any

from distlab.show.assets import widget_view
from distlab.show.canvas.theme import GRID, INK

__all__ = ["controls_box", "controls_row", "show_controls"]

_CSS = f"""
.distlab-controls {{ border: 1px solid var(--jp-border-color2, {GRID});
  border-radius: 6px; padding: 10px 14px; margin: 4px 0; max-width: 62em; }}
.distlab-controls, .distlab-controls .widget-box {{ overflow: visible; }}
.distlab-controls .distlab-controls-style {{ display: none; }}
.distlab-controls .distlab-controls-row {{ display: flex; flex-flow: row wrap;
  align-items: center; gap: 4px 10px; padding: 2px 0; }}
.distlab-controls .widget-html, .distlab-controls .widget-html-content {{ margin: 0;
  height: auto; min-height: 0; line-height: 1.5;
  color: var(--jp-ui-font-color1, {INK}); }}
.distlab-controls button.jupyter-button {{ width: auto; max-width: 100%; margin: 0; }}
"""

# The notebook binds most keys: with a button in focus, x would cut the cell. A button
# that vanishes in a click hands its focus to the one at its place, or the last. Widgets
# cannot run scripts, so this is a separate output beside the box.
_KEYS = """<script>
if (!window.distlabControls) {
  window.distlabControls = true;
  window.addEventListener("focusin", event => {
    const box = event.target.closest?.(".distlab-controls");
    if (!box) return;
    const buttons = () => [...box.querySelectorAll("button:enabled")];
    box.onkeydown = key => key.stopPropagation();
    box.focused = [event.target, buttons().indexOf(event.target)];
    box.watched ??= new MutationObserver(() => {
      const [last, at] = box.focused, left = buttons();
      if (last.isConnected || document.activeElement !== document.body) return;
      left[Math.min(at, left.length - 1)]?.focus();
    }).observe(box, {childList: true, subtree: true}) ?? true;
  });
}
</script>"""


def controls_box(name: str, css: str, parts: Iterable) -> Any:
    """Return a box of widgets, with a class of this name and its own style."""
    from ipywidgets import HTML, VBox

    style = HTML(f"<style>{_CSS}{css}</style>")
    style.add_class("distlab-controls-style")
    box = VBox([style, *parts])
    box.add_class("distlab-controls")
    box.add_class(name)
    return box


def controls_row(parts: Iterable = ()) -> Any:
    """Return a row of widgets, which are wrapped where it is narrow."""
    from ipywidgets import Box

    row = Box(list(parts))
    row.add_class("distlab-controls-row")
    return row


def show_controls(owner: Any, build: Callable) -> None:
    """Display the box that `build` returns; as HTML and text what `owner` is without.

    Where there are no widgets, only these.
    """
    from IPython.display import display

    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        view = {}
    else:
        view = widget_view(build())
        display({"text/html": _KEYS, "text/plain": ""}, raw=True)
    words = {"text/html": owner._repr_html_(), "text/plain": repr(owner)}
    display(view | words, raw=True)
