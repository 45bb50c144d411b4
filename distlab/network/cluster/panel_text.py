"""What a cluster's panel is drawn with, and what stands for it without widgets."""

from collections.abc import Sequence
from html import escape

from distlab.show.theme import GRID, INK, MUTED, rank_color

__all__ = ["KEYS", "STYLE", "swatch", "table_html", "table_text"]

_METHODS = (
    ("kill(1)", "kill a node's process with SIGKILL"),
    ("restart(1)", "start it again, from what it had saved"),
    ("pause(1), resume(1)", "stop it, and let it go on: slow, or dead?"),
    ("split([0], [1, 2])", "let no message pass between sides"),
    ("cut(0, 1)", "cut one link"),
    ("heal()", "mend every link"),
    ("delivery = Delivery(loss=0.1)", "how messages travel from now on"),
    ("call(0, 'read', 'x')", "ask a node"),
)

STYLE = f"""<style>
.distlab-cluster {{ border: 1px solid var(--jp-border-color2, {GRID});
  border-radius: 6px; padding: 10px 14px; margin: 4px 0; max-width: 62em;
  overflow: visible; }}
.distlab-cluster > style, .distlab-cluster .distlab-cluster-style {{ display: none; }}
.distlab-cluster-row {{ display: flex; flex-flow: row wrap; align-items: center;
  gap: 4px 10px; overflow: visible; padding: 2px 0; }}
.distlab-cluster-row > .widget-html:nth-child(1) {{ width: 6em; }}
.distlab-cluster-row > .widget-html:nth-child(2) {{ width: 13em; }}
.distlab-cluster .widget-html, .distlab-cluster .widget-html-content {{ margin: 0;
  height: auto; min-height: 0; line-height: 1.5;
  color: var(--jp-ui-font-color1, {INK}); }}
.distlab-cluster button.jupyter-button {{ width: auto; min-width: 5.5em;
  padding: 0 12px; margin: 0; }}
.distlab-cluster .widget-toggle-buttons {{ display: flex; flex-flow: row nowrap;
  align-items: center; width: auto; margin: 0; }}
.distlab-cluster .widget-toggle-buttons > label {{ width: auto; margin: 0 6px 0 0; }}
.distlab-cluster .widget-toggle-button, .distlab-cluster
  .widget-toggle-buttons button {{ min-width: 2.6em; width: auto; }}
.distlab-cluster .widget-slider {{ width: 20em; margin: 0; }}
.distlab-cluster .widget-slider > label {{ width: 5.5em; }}
.distlab-cluster-live {{ border-top: 1px solid var(--jp-border-color2, {GRID});
  padding-top: 6px; font-variant-numeric: tabular-nums; }}
</style>"""

# The notebook has its own plans for most keys: with a button in focus, x would cut the
# cell. Widgets cannot run scripts, so this stands beside the panel.
KEYS = """<script>
if (!window.distlabClusterKeys) {
  window.distlabClusterKeys = true;
  window.addEventListener("focusin", event => {
    const panel = event.target.closest?.(".distlab-cluster");
    if (panel) panel.onkeydown = key => key.stopPropagation();
  });
}
</script>"""


def swatch(node: int) -> str:
    """Return a node's name beside its colour."""
    drawn = (
        f'<span aria-hidden="true" style="display:inline-block;width:0.8em;'
        f'height:0.8em;border-radius:2px;background:{rank_color(node)}"></span>'
    )
    return f"{drawn} <b>node {node}</b>"


def table_text(states: Sequence[str], live: Sequence[str]) -> str:
    """Return the panel in plain words."""
    rows = [f"node {node}: {state}" for node, state in enumerate(states)]
    lines = ["Cluster", *rows, *live]
    return "\n".join([*lines, "Its methods do what the panel's buttons do."])


def table_html(states: Sequence[str], live: Sequence[str]) -> str:
    """Return the panel as a table that needs no kernel, and what to call instead."""
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{swatch(node)}</th>"
        f"<td style='text-align:left'>{escape(state)}</td></tr>"
        for node, state in enumerate(states)
    )
    calls = "".join(
        f"<tr><td style='text-align:left'><code>cluster.{escape(call)}</code></td>"
        f"<td style='text-align:left'>{escape(what)}</td></tr>"
        for call, what in _METHODS
    )
    told = "<br>".join(map(escape, live))
    return (
        f"<div class='distlab-cluster-table'><table><caption style='text-align:left'>"
        f"The cluster as this cell ran</caption>{rows}</table><p>{told}</p>"
        f"<p style='color:{MUTED}'>Here are no buttons, as nothing runs behind this "
        f"page. In a notebook of your own these do the same:</p>"
        f"<table>{calls}</table></div>"
    )
