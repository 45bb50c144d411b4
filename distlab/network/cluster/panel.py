"""`Panel`: buttons for a cluster, as widgets of a notebook.

    ● node 0   running             [kill] [pause]    side (A) (B)
    ■ node 1   killed              [restart]         side (A) (B)
    [partition] [heal]    dropped ──●──── 10 %   delay ─●──── 20 ms
    node 0: 212 answered, 0 refused, 3 unanswered in the last second

Buttons work while no cell runs, as the kernel does one thing at a time; clients that
were started in the background continue meanwhile.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from distlab.errors import DistlabError
from distlab.network.cluster.cluster_map import cluster_svg
from distlab.show.assets import widget_view
from distlab.show.canvas.theme import GRID, INK, MUTED, rank_color

__all__ = ["Panel"]

_SIDES = "ABC"
_LIVE_S = 1.0
_MOST_DELAY_MS = 200
_METHODS = (
    ("kill(1)", "kill a node's process with SIGKILL"),
    ("kill(1, loses='disk')", "... and lose its disk, or 'unsynced' writes"),
    ("restart(1)", "start it again, from what it had saved"),
    ("pause(1), resume(1)", "stop it, and let it go on: slow, or dead?"),
    ("split([0], [1, 2])", "let no message pass between sides"),
    ("cut(0, 1)", "let no message pass from node 0 to 1"),
    ("heal()", "end every partition and cut"),
    ("move_clock(1, -60)", "let a node's clock jump by seconds"),
    ("delivery = Delivery(loss=0.1)", "how messages travel from now on"),
    ("call(0, 'read', 'x')", "ask a node"),
)

_STYLE = f"""<style>
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
.distlab-cluster .widget-slider > label {{ width: 6.5em; }}
.distlab-cluster-live {{ border-top: 1px solid var(--jp-border-color2, {GRID});
  padding-top: 6px; font-variant-numeric: tabular-nums; }}
</style>"""

# The notebook binds most keys: with a button in focus, x would cut the cell. Widgets
# cannot run scripts, so this is a separate output beside the panel.
_KEYS = """<script>
if (!window.distlabClusterKeys) {
  window.distlabClusterKeys = true;
  window.addEventListener("focusin", event => {
    const panel = event.target.closest?.(".distlab-cluster");
    if (panel) panel.onkeydown = key => key.stopPropagation();
  });
}
</script>"""


class Panel:
    """The panel of a cluster in a notebook: its state, and buttons for its methods.

    cluster: the `Cluster`, whose methods the buttons call. supervisor: its
    `Supervisor`, which calls the panel's `look` several times a second.
    """

    def __init__(self, cluster, supervisor):
        self._cluster, self._supervisor = cluster, supervisor
        self._box = None
        self._shown = {}

    def __repr__(self):
        rows = [f"node {node}: {state}" for node, state in enumerate(self._rows())]
        lines = ["Cluster", *rows, *self._live()]
        return "\n".join([*lines, "Its methods do what the panel's buttons do."])

    def _repr_html_(self):
        return _table_html(self._drawn(), self._rows(), self._live())

    def _ipython_display_(self):
        from IPython.display import display

        display({"text/html": _KEYS, "text/plain": ""}, raw=True)
        if self._box is None:
            self._box = self._build()
            self._supervisor.watchers.append(self.look)
        self.look()
        words = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        display(widget_view(self._box) | words, raw=True)

    # display

    def _rows(self):
        """Return the state of each node, in words."""
        supervisor = self._supervisor
        if supervisor.over:
            return [f"{state} at the end" for state in supervisor.states]
        severed, described = supervisor.partitions.severed(), []
        for node, state in enumerate(supervisor.states):
            lost = [str(other) for one, other in sorted(severed) if one == node]
            if state == "running" and lost:
                state = f"cut off from {', '.join(lost)}"
            described.append(state)
        return described

    def _drawn(self):
        """Return an SVG of nodes, links and outcomes of the last second."""
        supervisor = self._supervisor
        severed = supervisor.partitions.severed()
        return cluster_svg(supervisor.states, severed, self._counted())

    def _counted(self):
        """Return (node, outcome) -> operations of the last second."""
        supervisor = self._supervisor
        if supervisor.over:
            return Counter()
        since = supervisor.now() - _LIVE_S
        return Counter(
            (node, outcome)
            for at, node, outcome in list(supervisor.clients.recent)
            if at > since
        )

    def _live(self):
        """Return a line for each side with its outcomes of the last second."""
        supervisor, counted, lines = self._supervisor, self._counted(), []
        if supervisor.over:
            first = str(supervisor.failure or "").split("\n")[0]
            return [f"The cluster has ended{': ' + first if first else '.'}"]
        for side in supervisor.partitions.sides():
            answered, refused, unanswered = (
                sum(counted[node, outcome] for node in side)
                for outcome in ("ok", "failed", "unknown")
            )
            who = f"node{'s' if len(side) > 1 else ''} {' '.join(map(str, side))}"
            lines.append(
                f"{who}: {answered} answered, {refused} refused, "
                f"{unanswered} unanswered in the last second"
            )
        return lines

    def look(self) -> None:
        """Update changed widgets; called by the supervisor's thread as well."""
        rows = self._rows()
        for node, described in enumerate(rows):
            self._show(self._states[node], f"<span>{escape(described)}</span>")
            state, over = self._supervisor.states[node], self._supervisor.over
            dead = state == "killed"
            self._label(self._kill[node], "restart" if dead else "kill", node, over)
            word = "resume" if state == "paused" else "pause"
            self._label(self._pause[node], word, node, over or dead)
        self._show(self._line, "<br>".join(map(escape, self._live())))
        self._show(self._picture, self._drawn())
        if self._supervisor.over:
            for widget in (*self._sides, *self._network_parts):
                widget.disabled = True

    def _show(self, widget, html):
        if self._shown.get(widget) != html:
            self._shown[widget] = widget.value = html

    def _label(self, button, word, node, disabled):
        if self._shown.get(button) != (word, disabled):
            self._shown[button] = word, disabled
            button.description = word
            button.tooltip = f"{word} node {node}"
            button.disabled = disabled

    # controls

    def _build(self):
        import ipywidgets as widgets

        count = self._cluster.nodes
        self._states = [widgets.HTML() for _ in range(count)]
        self._kill = [self._button(widgets, self._kill_one, n) for n in range(count)]
        self._pause = [self._button(widgets, self._pause_one, n) for n in range(count)]
        self._sides = [self._side(widgets, node) for node in range(count)]
        self._picture, self._line, self._said = (widgets.HTML() for _ in range(3))
        rows = []
        for node in range(count):
            name = widgets.HTML(_swatch(node))
            row = [name, self._states[node], self._kill[node], self._pause[node]]
            rows.append(self._line_of(widgets, [*row, self._sides[node]]))
        style = widgets.HTML(_STYLE)
        style.add_class("distlab-cluster-style")
        self._line.add_class("distlab-cluster-live")
        parts = [style, self._picture, *rows, self._network(widgets), self._line]
        box = widgets.VBox([*parts, self._said])
        box.add_class("distlab-cluster")
        return box

    def _network(self, widgets):
        """Return the row of controls for the network."""
        split = widgets.Button(
            description="partition", tooltip="drop every message between the sides"
        )
        heal = widgets.Button(description="heal", tooltip="end every partition")
        split.on_click(lambda _: self._do(self._split))
        heal.on_click(lambda _: self._do(self._cluster.heal))
        delivery = self._cluster.delivery
        how = {"continuous_update": False}
        self._loss = widgets.IntSlider(
            round(100 * delivery.loss), 0, 50, description="dropped, %", **how
        )
        mean_s = getattr(delivery.delay_s, "mean_s", None)  # of a distribution
        delay_ms = round(
            500 * sum(delivery.delay_s) if mean_s is None else 1000 * mean_s
        )
        self._delay_ms = widgets.IntSlider(
            min(delay_ms, _MOST_DELAY_MS),
            0,
            _MOST_DELAY_MS,
            description="delay, ms",
            **how,
        )
        self._loss.observe(lambda _: self._do(self._lose), "value")
        self._delay_ms.observe(lambda _: self._do(self._delay), "value")
        self._network_parts = split, heal, self._loss, self._delay_ms
        return self._line_of(widgets, self._network_parts)

    def _line_of(self, widgets, parts):
        line = widgets.Box(parts)
        line.add_class("distlab-cluster-row")
        return line

    def _button(self, widgets, what, node):
        button = widgets.Button()
        button.on_click(lambda _: self._do(what, node))
        return button

    def _side(self, widgets, node):
        count = self._cluster.nodes
        options = _SIDES[: 3 if count > 3 else 2]
        return widgets.ToggleButtons(
            options=list(options),
            value=options[0] if node < count // 2 else options[1],
            description="side",
            tooltips=[f"node {node} on side {side}" for side in options],
        )

    def _do(self, what, *about):
        """Run a button's action; show the error's first line if it fails."""
        described = ""
        try:
            what(*about)
        except DistlabError as error:
            described = str(error).split("\n")[0]
        self._said.value = f'<span role="status">{escape(described)}</span>'
        self.look()

    def _kill_one(self, node):
        dead = self._supervisor.states[node] == "killed"
        (self._cluster.restart if dead else self._cluster.kill)(node)

    def _pause_one(self, node):
        paused = self._supervisor.states[node] == "paused"
        (self._cluster.resume if paused else self._cluster.pause)(node)

    def _split(self):
        sides = {}
        for node, chosen in enumerate(self._sides):
            sides.setdefault(chosen.value, []).append(node)
        self._cluster.split(*(sides[side] for side in sorted(sides)))

    def _lose(self):
        loss = self._loss.value / 100
        self._cluster.delivery = replace(self._cluster.delivery, loss=loss)

    def _delay(self):
        middle_s = self._delay_ms.value / 1000
        delay_s = 0.5 * middle_s, 1.5 * middle_s
        self._cluster.delivery = replace(self._cluster.delivery, delay_s=delay_s)


def _swatch(node: int) -> str:
    """Return a node's name beside its colour."""
    drawn = (
        f'<span aria-hidden="true" style="display:inline-block;width:0.8em;'
        f'height:0.8em;border-radius:2px;background:{rank_color(node)}"></span>'
    )
    return f"{drawn} <b>node {node}</b>"


def _table_html(drawn: str, states: Sequence[str], live: Sequence[str]) -> str:
    """Return the panel as a static table, with the methods to call instead."""
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{_swatch(node)}</th>"
        f"<td style='text-align:left'>{escape(state)}</td></tr>"
        for node, state in enumerate(states)
    )
    calls = "".join(
        f"<tr><td style='text-align:left'><code>cluster.{escape(call)}</code></td>"
        f"<td style='text-align:left'>{escape(what)}</td></tr>"
        for call, what in _METHODS
    )
    described = "<br>".join(map(escape, live))
    return (
        f"<div class='distlab-cluster-table'><table><caption style='text-align:left'>"
        f"The cluster as this cell ran</caption>{rows}</table>{drawn}<p>{described}</p>"
        f"<p style='color:{MUTED}'>Here are no buttons, as nothing runs behind this "
        f"page. In a notebook of your own these do the same:</p>"
        f"<table>{calls}</table></div>"
    )
