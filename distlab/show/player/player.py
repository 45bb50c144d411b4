"""`Player`: the animation of a trace in a notebook or a page, or as still pictures."""

import math
import sys
from bisect import bisect_left
from functools import cached_property

from distlab.errors import InvalidArgument
from distlab.show.assets import document
from distlab.show.canvas.text import literal
from distlab.show.figures.pipeline import pipeline
from distlab.show.player.animation import Animation
from distlab.show.player.job_animation import JobAnimation
from distlab.show.player.node_animation import NodeAnimation
from distlab.show.player.page import fragment
from distlab.show.player.pipeline_animation import PipelineAnimation
from distlab.show.player.still import gif, key_frame_row, png
from distlab.show.reading.pipeline_cells import PipelineCells, first_difference
from distlab.show.reading.trace_reading import trace_of
from distlab.trace import Trace

__all__ = ["PipelinePlayer", "Player", "folded", "player", "save"]

_ZOOM = 0.6  # a row of three frames then fills a notebook
_KINDS = (".html", ".svg", ".png", ".gif")


class Player:
    """One animation, or several side by side, with controls; `alt` describes it.

    Shows itself as the last line of a cell. Where scripts do not run, a row of key
    frames replaces it.
    """

    def __init__(self, animation: Animation):
        self.animation = animation
        self.alt = animation.alt()

    def __repr__(self):
        return self.alt

    def html(self, image: str = "") -> str:
        """Return the player as self-contained HTML.

        image: a data URL of a picture for pages without scripts, else one frame.
        """
        return fragment([self.animation], image=image)

    def strip(self) -> str:
        """Return the key frames side by side, as SVG."""
        return key_frame_row(self.animation)

    def save(self, path) -> None:
        """Write a .html page, a .svg or .png of the key frames, or a .gif.

        Raises: InvalidArgument for another suffix.
        """
        kind = "." + str(path).lower().rpartition(".")[2]
        if kind not in _KINDS:
            raise InvalidArgument(
                f"a player is saved as {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, and "
                f'got {str(path)!r}. For example: show.save(report, "ring.html")'
            )
        drawn = self._drawn(kind)
        with open(path, "wb") as file:
            file.write(drawn)

    def _drawn(self, kind):
        if kind == ".html":
            return document(self.html(), self.animation.title or "distlab").encode()
        if kind == ".svg":
            return self.strip().encode()
        return png(self.strip(), 1.0) if kind == ".png" else gif(self.animation)

    def _repr_mimebundle_(self, include=None, exclude=None):
        from base64 import b64encode

        image = b64encode(png(self.strip(), _ZOOM)).decode()
        html = self.html(f"data:image/png;base64,{image}")
        return {"text/html": html, "image/png": image, "text/plain": self.alt}


class PipelinePlayer(Player):
    """A pipeline that plays, or two on one clock; without scripts, a chart.

    schedules: cells of one or two, as `pipeline` takes them.
    """

    def __init__(self, schedules, title="", unit="slot", names=("", "")):
        chart = pipeline(*schedules, title=title, unit=unit, names=names, memory=True)
        given = [PipelineCells.of(cells, literal(unit, 24)) for cells in schedules]
        self.animations = [PipelineAnimation(each, title, given) for each in given]
        super().__init__(self.animations[0])
        self.alt, self._chart = chart.alt, chart
        self.stop, self.difference, self.names = 0, "", ()
        if len(given) > 1:
            heads = zip(names, self.animations, strict=True)
            self.names = [f"{name}: {animation.subtitle}" for name, animation in heads]
            self.animation.subtitle = ""
            self.difference, places = first_difference(*given)
            since = min((start for _, start, _ in filter(None, places)), default=None)
            moments = [frame.at_s for frame in self.animation.frames]
            self.stop = 0 if since is None else bisect_left(moments, since)

    @cached_property
    def _still(self):
        return self._chart._repr_mimebundle_()

    def html(self, image=""):
        """Return the player as self-contained HTML; see `Player.html`."""
        return fragment(
            self.animations,
            names=self.names,
            differs=self.stop,
            verdict=self.difference,
            image=image or f"data:image/png;base64,{self._still['image/png']}",
        )

    def strip(self):
        """Return the chart, as SVG."""
        return self._chart._drawn("svg").decode()

    def _drawn(self, kind):
        if kind == ".gif":
            raise InvalidArgument(
                "a pipeline that plays is saved as .html, .svg or .png, not as .gif."
            )
        return super()._drawn(kind)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {**self._still, "text/html": self.html()}


def player(
    trace=None,
    title="",
    *,
    bound_bytes=None,
    bound_label="bound",
    shape="auto",
    unit="slot",
) -> Player:
    """Play a run step by step: the messages between ranks, and the chunks on each.

    trace: a `Trace`, or anything with a `.trace`, such as a report or a failure; the
    last failure that was shown, if left out. From `follow`, it also shows the ranks'
    contributions in each chunk. Or a list of a pipeline's cells, as `pipeline` takes
    it: works light up as they are done, beside the number of microbatches held.
    Of nodes and clients it plays their space-time diagram: see `NodeAnimation`.
    bound_bytes: the bytes that each rank should send, or may send at the most.
    shape: of the ranks' layout: "auto", "ring", "tree", "hypercube", "grid", "circle".
    unit: of time in a pipeline's cells.

    Raises: InvalidArgument if there is no trace in it, the bound is not a number, or
    the ranks do not form the shape.
    """
    if isinstance(trace, list) and trace:
        return PipelinePlayer([trace], title, unit)
    if trace is None:
        trace = getattr(sys, "last_value", None)
    return Player(_animation(trace, title, bound_bytes, bound_label, shape))


def folded(trace: Trace, most: int) -> str:
    """Return the player as HTML, folded, or "" if there is nothing to play.

    most: events; a longer run is played only by a call of `player`.
    """
    moved = trace.who == "worker" or trace.messages()
    if not 0 < len(trace) <= most or not moved:
        return ""
    return (
        "<details><summary style='cursor:pointer'>Play this run</summary>"
        f"{player(trace).html()}</details>"
    )


def save(trace, path, title="", **options) -> None:
    """Write the player of a run to .html, its key frames to .svg or .png, or a .gif.

    options: those of `player`.

    Raises: as `player` does, and InvalidArgument for another suffix.
    """
    player(trace, title, **options).save(path)


def _animation(trace, title, bound_bytes, bound_label, shape):
    bound = None
    if bound_bytes is not None:
        number = hasattr(bound_bytes, "__float__") and not isinstance(bound_bytes, bool)
        if not number or not math.isfinite(bound_bytes) or bound_bytes < 0:
            raise InvalidArgument(
                f"bound_bytes is a number of bytes per rank, and got {bound_bytes!r}. "
                "For example: player(report, bound_bytes=2 * (n - 1) / n * size)"
            )
        bound = bound_bytes, literal(bound_label, 40)
    trace = trace_of(trace)
    if trace.who == "node":
        return NodeAnimation(trace, title)
    if trace.who != "rank":
        return JobAnimation(trace, title)
    return Animation(trace, title, bound=bound, shape=shape)
