"""`step_through`: a run in which the learner picks each next event.

    node 0   copy=(1, 0, 'a')  work={}          1. node 1 gets 'ask 1' from node 0
    node 1   crashed                            2. client 1 asks node 2: read x
    [back]                                      3. node 2 crashes

What may happen next is what a search may take next, so a step that was taken can be
taken back, and what was picked is a schedule.
"""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.client import Client, check_clients
from distlab.network.describe import shorten
from distlab.network.node_host import check_nodes
from distlab.network.outcome import Outcome
from distlab.network.schedules.counterexample import Finder
from distlab.network.schedules.properties import Property, nodes_of
from distlab.network.schedules.replay import replay
from distlab.network.schedules.schedule import EventSchedule, ScheduleStep
from distlab.network.schedules.transitions import FaultLimits, all_splits
from distlab.show.assets import widget_view
from distlab.show.canvas.theme import GRID, INK, MUTED, rank_color

__all__ = ["SteppedRun", "step_through"]

_MOST_NODES, _ROOM, _NO_END = 100, 60, 1_000_000
_NOT_SHOWN = ("me", "peers", "random", "clock_s")
_FAULTS = ("crash", "drop", "duplicate", "split", "time_out")
_STYLE = f"""<style>
.distlab-steps {{ border: 1px solid var(--jp-border-color2, {GRID});
  border-radius: 6px; padding: 10px 14px; margin: 4px 0; max-width: 62em; }}
.distlab-steps, .distlab-steps .widget-box {{ overflow: visible; }}
.distlab-steps .widget-box.distlab-steps-row {{ display: flex; flex-flow: row wrap;
  gap: 4px; padding: 2px 0; }}
.distlab-steps button.jupyter-button {{ width: auto; max-width: 100%; height: auto;
  min-height: 28px; margin: 0; padding: 3px 10px; line-height: 1.4;
  text-align: left; white-space: normal; overflow-wrap: anywhere; }}
.distlab-steps .widget-html, .distlab-steps .widget-html-content {{ height: auto;
  margin: 0; line-height: 1.5; color: var(--jp-ui-font-color1, {INK}); }}
.distlab-steps-nodes {{ overflow-wrap: anywhere; }}
.distlab-steps-past {{ color: var(--jp-ui-font-color2, {MUTED}); }}
</style>"""


def step_through(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    monitors: Iterable = (),
    start: EventSchedule | Iterable[str] = (),
    seed: int = 0,
) -> "SteppedRun":
    """Start a run in which each next event is picked: a message to arrive, a crash.

    check, invariant, monitors: as in a search; the run shows what they find wrong.
    start: a schedule, or its sentences, that has happened already.

    In a notebook the result has a button for each event that may be next.
    """
    check_nodes(nodes, _MOST_NODES)
    clients = check_clients(clients, nodes, repeatable=True)
    wanted = Property(check, invariant, monitors, needed=False)
    counts = {name: _NO_END for name in FaultLimits._fields if name not in _RARE}
    limits = FaultLimits(**counts | {"ways": all_splits(nodes)})
    finder = Finder((make, nodes, clients), wanted, limits, seed, False)
    with finder.memo.watchdog:
        finder.begin(EventSchedule(start))
    return SteppedRun(finder)


_RARE = ("power_losses", "disk_losses", "cuts", "clock_jumps", "ways")


class SteppedRun:
    """A run whose events are picked one by one.

    steps: those that may be next. schedule: those that were taken.
    """

    def __init__(self, finder: Finder):
        self._finder, self._states, self._box = finder, [finder.first], None
        self.schedule = finder.start
        self._choose()

    def _choose(self):
        """Find the steps that may be next."""
        transitions, state = self._finder.transitions, self._states[-1]
        found = [] if state.failed else transitions.all(state)
        waiting = [n for n, (each, _) in enumerate(state.clients) if each.waits]
        found += [] if state.failed else [("time_out", number) for number in waiting]
        words = dict.fromkeys(transitions.in_words(state, step) for step in found)
        self.steps = EventSchedule(sorted(words, key=lambda step: step.kind in _FAULTS))

    def take(self, step: int | str | ScheduleStep) -> "SteppedRun":
        """Let a step happen: its number among `steps`, from 1, or its sentence.

        Raises: InvalidArgument for one that cannot be next.
        """
        if isinstance(step, int) and 1 <= step <= len(self.steps):
            step = self.steps[step - 1]
        chosen = next((each for each in self.steps if step in (each, str(each))), None)
        if chosen is None:
            raise InvalidArgument(
                f"{step!r} cannot be next. These can:\n{self.steps!r}"
            )
        transitions, state = self._finder.transitions, self._states[-1]
        with self._finder.memo.watchdog:
            after = transitions.take(state, transitions.find(state, chosen))
        self._states.append(after)
        return self._went_to([*self.schedule, chosen])

    def back(self) -> "SteppedRun":
        """Take the last step back, if there is one."""
        if len(self._states) > 1:
            self._states.pop()
            self._went_to(self.schedule[:-1])
        return self

    def _went_to(self, steps):
        self.schedule = EventSchedule(steps)
        self._choose()
        if self._box is not None:
            self._fill()
        return self

    @property
    def nodes(self) -> list:
        """The nodes' objects, None for a dead one."""
        return nodes_of(self._finder.memo, self._states[-1])

    @property
    def why(self) -> str:
        """What is wrong by now, in words; "" if nothing is."""
        return self._finder.wrong(self._states[-1])

    def outcome(self) -> Outcome:
        """Return the outcome so far, with the trace of a replay on real nodes."""
        finder = self._finder
        return replay(*finder.what, self.schedule, seed=finder.seed).outcome

    def __repr__(self):
        rows = [f"node {node}: {text}" for node, text in enumerate(self._rows())]
        wrong = [f"Wrong: {self.why}"] if self.why else []
        what = "may happen next; take(1) takes the first, back() the last one back:"
        ask = f"{len(self.steps)} steps {what}\n{self.steps!r}"
        return "\n".join([f"After {len(self.schedule)} steps:", *rows, *wrong, ask])

    def _rows(self):
        """Return the memory of each node, in words."""
        rows = []
        for node in self.nodes:
            parts = vars(node).items() if node else ()
            parts = [f"{n}={_short(part)}" for n, part in parts if n not in _NOT_SHOWN]
            rows.append("  ".join(parts) if node else "crashed")
        return rows

    # a notebook's display

    def _repr_html_(self):
        return f"{self._nodes_html()}<pre>{escape(repr(self.steps))}</pre>"

    def _ipython_display_(self):
        from IPython.display import display

        words = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        try:
            import ipywidgets
        except ImportError:
            return display(words, raw=True)
        if self._box is None:
            self._box = ipywidgets.VBox()
            self._box.add_class("distlab-steps")
        self._fill()
        display(widget_view(self._box) | words, raw=True)

    def _fill(self):
        """Put the present state, and a button for each step, into the box."""
        from ipywidgets import HTML, Button

        back = Button(description="back", disabled=len(self._states) == 1)
        back.on_click(lambda _: self.back())
        usual = [step for step in self.steps if step.kind not in _FAULTS]
        faults = [step for step in self.steps if step.kind in _FAULTS]
        past = "<br>".join(
            f"{n}. {escape(str(step))}" for n, step in enumerate(self.schedule, 1)
        )
        self._box.children = [
            HTML(_STYLE + self._nodes_html()),
            HTML("<b>What happens next?</b>"),
            self._row(map(self._button, usual)),
            HTML("<b>Or a fault?</b>"),
            self._row(map(self._button, faults)),
            self._row([back]),
            HTML(f'<div class="distlab-steps-past" role="status">{past}</div>'),
        ]

    def _row(self, buttons):
        from ipywidgets import Box

        row = Box(list(buttons))
        row.add_class("distlab-steps-row")
        return row

    def _button(self, step):
        from ipywidgets import Button

        button = Button(description=shorten(str(step), _ROOM), tooltip=str(step))
        button.on_click(lambda _: self.take(step))
        return button

    def _nodes_html(self):
        rows = [
            f'<div><b style="color:{rank_color(node)}">node {node}</b> '
            f"{escape(text)}</div>"
            for node, text in enumerate(self._rows())
        ]
        wrong = f"<div><b>Wrong:</b> {escape(self.why)}</div>" if self.why else ""
        return f'<div class="distlab-steps-nodes">{"".join(rows)}{wrong}</div>'


def _short(value: Any) -> str:
    return shorten(repr(value), _ROOM)
