"""The picture below a verdict that is no pass: a player of the ranks' messages.

    a run of the learner's ────▶ its player
    and one of the library's ──▶ both in step, up to the first difference

Nothing is drawn before it is shown; the learner's function is not called for it.
"""

import math
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial

from distlab.errors import WorldFailed
from distlab.launch import follow
from distlab.links import Link
from distlab.show import compare, player
from distlab.show.player.still import png
from distlab.simulated import Uniform
from distlab.trace import Trace

__all__ = ["MOST_MESSAGES", "Played", "Seated", "librarys", "ring_seats", "tree_seats"]

MOST_MESSAGES = 2000  # in a run that is drawn
_MOST_IMAGE_BYTES, _MOST_HTML_BYTES = 150_000, 1_000_000
_NAMES = "yours", "the library's"
_ONE_SECOND_EACH = Uniform(Link(latency_s=1.0, bytes_per_s=math.inf))


class Played:
    """A picture of a run of the learner's ranks, for a cell to display.

    ideals: runs of the library's to compare it with, made when they are needed. Of
    several that are equally good the one that agrees for the longest is shown, and none
    if all have begun in another order.
    """

    def __init__(self, trace: Trace, title: str, ideals: Iterable[Trace] = ()):
        self.trace, self._title, self._ideals = trace, title, ideals

    @cached_property
    def player(self):
        """The player of the learner's run, with the library's if they partly agree."""
        best = None
        for ideal in self._ideals:
            both = self._beside(ideal)
            if both.same:
                best = None
                break
            if both.stop == 1 and _strangers(both):
                continue
            if best is None or both.stop > best[0].stop:
                best = both, ideal
            if both.stop > 1:
                break
        if best is None:
            return player(self.trace, self._title)
        return self._cut(*best)

    def _beside(self, ideal):
        shares = ideal.shares if self.trace.shares else None
        ideal = Trace(ideal.world_size, ideal.events, shares=shares)
        return compare(self.trace, ideal, self._title, names=_NAMES)

    def _cut(self, both, ideal):
        """Return both, the library's up to the difference, with the same captions."""
        cut = self._beside(_until(ideal, both.ideal.frames, both.stop))
        for frame, whole in zip(cut.ideal.frames, both.ideal.frames, strict=False):
            frame.title, frame.short, frame.text = whole.title, whole.short, whole.text
        cut.stop, cut.difference, cut.alt = both.stop, both.difference, both.alt
        return cut

    @cached_property
    def _bundle(self):
        drawn = self.player
        bundle = drawn._repr_mimebundle_()
        for zoom in (0.45, 0.35, 0.25):
            if len(b64decode(bundle["image/png"])) <= _MOST_IMAGE_BYTES:
                break
            image = b64encode(png(drawn.strip(), zoom)).decode()
            html = drawn.html(f"data:image/png;base64,{image}")
            bundle |= {"image/png": image, "text/html": html}
        if len(bundle["text/html"]) > _MOST_HTML_BYTES:
            del bundle["text/html"]
        return bundle

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self._bundle


def _strangers(both):
    """Return True if two runs begin with messages between different ranks."""
    pairs = [
        {
            (move.src, move.dst)
            for frame in animation.frames[1:2]
            for move in frame.moves
        }
        for animation in (both.animation, both.ideal)
    ]
    return all(pairs) and not pairs[0] & pairs[1]


def _until(trace, frames, stop):
    """Return a run's trace up to a frame of its animation."""
    if stop >= len(frames):
        return trace
    at_s, shares = frames[stop].at_s, trace.shares
    done = [e for e in trace.events if e.end <= at_s and e.start < at_s]
    last = defaultdict(int)
    for event in done:
        last[event.rank] = max(last[event.rank], event.step)
    held = [
        [(step, table) for step, table in tables if step <= last[rank]]
        for rank, tables in enumerate(shares.held)
    ]
    return Trace(trace.world_size, done, shares=replace(shares, held=held))


# ---- runs of the library's -----------------------------------------------------------


class Seated:
    """The Comm of a rank in another one's role; `seats`: rank -> its role."""

    def __init__(self, comm, seats: Sequence[int]):
        self._comm, self._seats = comm, seats
        self._rank_at = {seat: rank for rank, seat in enumerate(seats)}
        self.rank, self.world_size = seats[comm.rank], comm.world_size
        self.mark = comm.mark

    def send(self, tensor, dst):
        """Send to the rank in the role of rank `dst`."""
        self._comm.send(tensor, self._rank_at[dst])

    def recv(self, tensor, src):
        """Receive from the rank in the role of rank `src`."""
        return self._comm.recv(tensor, self._rank_at[src])

    def sendrecv(self, outgoing, incoming, *, dst, src):
        """Send and receive at once, between ranks in these roles."""
        peers = {"dst": self._rank_at[dst], "src": self._rank_at[src]}
        return self._comm.sendrecv(outgoing, incoming, **peers)


def librarys(
    algorithm: Callable, seatings: Iterable[Sequence[int]], **how
) -> Iterable[Trace]:
    """Yield simulated runs of a collective of the library's, one for each seating.

    There is none if the library's is withheld, as while a submission is graded.
    how: `numbers` and `holds`, as for `follow`.
    """
    for seats in seatings:
        fn = partial(_seated, algorithm, seats)
        try:
            report = follow(fn, len(seats), fabric=_ONE_SECOND_EACH, **how)
        except WorldFailed as failure:
            if isinstance(failure.cause, NotImplementedError):
                return
            raise
        yield report.trace


def _seated(algorithm, seats, comm, tensor):
    algorithm(Seated(comm, seats), tensor)


def ring_seats(n: int) -> Iterable[list[int]]:
    """Yield the seatings that keep a ring a ring: rotated, or reversed."""
    for way in (1, -1):
        for first in range(n):
            yield [(first + way * rank) % n for rank in range(n)]


def tree_seats(n: int, root: int) -> Iterable[list[int]]:
    """Yield the seatings of a tree with this root: nearest ranks last, or first.

    The second is a tree of the same kind only if n is a power of two.
    """
    yield list(range(n))
    if n & (n - 1) == 0:
        digits = n.bit_length() - 1
        places = [(rank - root) % n for rank in range(n)]
        turned = [int(f"{p:0{digits}b}"[::-1], 2) if digits else 0 for p in places]
        yield [(place + root) % n for place in turned]
