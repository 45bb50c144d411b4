"""`compare`: two runs side by side, up to the first step where they differ."""

from collections import Counter

from distlab.errors import InvalidArgument
from distlab.show.film.film import Film
from distlab.show.film.page import fragment
from distlab.show.film.player import Player
from distlab.show.film.still import pair_strip
from distlab.show.reading import trace_of
from distlab.units import readable_bytes

__all__ = ["Comparison", "compare"]


class Comparison(Player):
    """Two films in step, and where they part.

    same: whether they agree in every step. stop: the first step where they differ, 0
    if none. difference: what differs there, in words; empty if nothing does.
    """

    def __init__(self, mine: Film, ideal: Film, names: tuple[str, str]):
        super().__init__(mine)
        self.ideal, self.names = ideal, names
        self.stop, self.difference = _first_difference(mine, ideal)
        self.same = not self.stop
        self.alt = f"Side by side, {names[0]} and {names[1]}. {self.verdict}"

    @property
    def verdict(self) -> str:
        """Say whether the runs agree, and if not, where and how they part."""
        steps = len(self.film.frames) - 1
        if self.same:
            sent = sum(len(frame.moves) for frame in self.film.frames)
            return f"Both runs agree in all {steps} steps: the same {sent} messages" + (
                ", and the same shares everywhere." if self._shares else "."
            )
        title = self.film.frames[min(self.stop, steps)].title
        where = f" ({title})" if self.stop <= steps else ""
        return f"First difference at step {self.stop}{where}: {self.difference}"

    @property
    def _shares(self):
        return self.film.chunks and self.ideal.chunks

    def html(self, image: str = "") -> str:
        """Return both players with one set of controls, as HTML; see `Player.html`."""
        return fragment(
            [self.film, self.ideal],
            names=self.names,
            differs=self.stop,
            verdict=self.verdict,
            image=image,
        )

    def strip(self) -> str:
        """Return both films at the step where they part, or at the end, as SVG."""
        last = max(len(self.film.frames), len(self.ideal.frames)) - 1
        number = self.stop or last
        return pair_strip([self.film, self.ideal], self.names, number, self.verdict)


def compare(
    mine, ideal, title="", *, names=("yours", "ideal"), shape="auto"
) -> Comparison:
    """Play two runs in step; stop where they first differ, and say what differs.

    Messages are compared step by step by sender, receiver and bytes; if both traces
    come from `follow`, also by which chunk they carry, and whose shares each rank
    holds afterwards.

    mine, ideal: a `Trace`, or anything with a `.trace`. names: over each of them.

    Raises: InvalidArgument for two runs of different numbers of ranks, or no trace.
    """
    traces = trace_of(mine), trace_of(ideal)
    sizes = [trace.world_size for trace in traces]
    if sizes[0] != sizes[1]:
        raise InvalidArgument(
            f"two runs are compared step by step, rank by rank, and these have "
            f"{sizes[0]} and {sizes[1]} ranks. Run both with the same world_size."
        )
    films = [Film(trace, title, shape=shape) for trace in traces]
    return Comparison(*films, names)


def _first_difference(mine, ideal):
    """Return the step where two films first differ, and what differs; 0 if nowhere."""
    for number in range(1, max(len(mine.frames), len(ideal.frames))):
        ours, theirs = (
            film.frames[number] if number < len(film.frames) else None
            for film in (mine, ideal)
        )
        said = _ended(ours, theirs) or _messages(mine, ideal, ours, theirs)
        said = said or _tables(mine, ideal, ours, theirs)
        if said:
            return number, said
    return 0, ""


def _ended(ours, theirs):
    """Say which run ends before the other, or stands in a barrier where it does not."""
    if ours is None:
        return f"yours has ended here; the ideal goes on: {theirs.text}"
    if theirs is None:
        return f"the ideal has ended here; yours goes on: {ours.text}"
    if ours.broken != theirs.broken:
        broken = ours if ours.broken else theirs
        whose = "yours" if ours.broken else "the ideal"
        return f"{whose} goes no further. {broken.text}"
    if bool(ours.ranks) != bool(theirs.ranks):
        return f"yours: {ours.text} The ideal: {theirs.text}"
    return ""


def _messages(mine, ideal, ours, theirs):
    """Say which message differs: who to whom, how many bytes, which numbers."""
    sent = [
        Counter(_identity(film, move) for move in frame.moves)
        for film, frame in ((mine, ours), (ideal, theirs))
    ]
    if not (mine.chunks and ideal.chunks):
        sent = [Counter({k[:3]: c for k, c in one.items()}) for one in sent]
    extra, missing = sent[0] - sent[1], sent[1] - sent[0]
    if not extra and not missing:
        return ""
    pairs = sorted({key[:2] for key in (*extra, *missing)})
    pair = pairs[0]
    yours = [key for key in extra if key[:2] == pair]
    wanted = [key for key in missing if key[:2] == pair]
    more = len(pairs) - 1
    others = f" So do {more} other pairs of ranks." if more > 1 else ""
    others = " So does one other pair of ranks." if more == 1 else others
    way = "rank {} sends {} to rank {}"
    if yours and wanted:
        one, other = _contents(mine, yours[0]), _contents(ideal, wanted[0])
        said = way.format(pair[0], one, pair[1]) + f", and in the ideal {other}."
        return said + others.replace("do", "differ").replace("does", "differs")
    if yours:
        said = way.format(pair[0], _contents(mine, yours[0]), pair[1])
        return f"{said}, which the ideal does not."
    told = way.format(pair[0], _contents(ideal, wanted[0]), pair[1])
    return f"in the ideal {told}; yours does not."


def _identity(film, move):
    """Return what a message is known by: ranks, bytes, and the numbers it carries."""
    return move.src, move.dst, move.bytes, _numbers(film, move.chunks)


def _numbers(film, chunks):
    """Return the runs of numbers, as (first, end), that chunks are."""
    runs = []
    for chunk in chunks:
        first, end = film.bounds[chunk], film.bounds[chunk + 1]
        if runs and runs[-1][1] == first:
            first = runs.pop()[0]
        runs.append((first, end))
    return tuple(runs)


def _contents(film, key):
    size = readable_bytes(key[2])
    if len(key) < 4 or not key[3]:
        return size
    first, end = key[3][0]
    if first in film.bounds and film.chunks > 1:
        chunk = film.bounds.index(first)
        if film.bounds[chunk + 1] == end:
            return f"chunk {chunk} ({size})"
    return f"numbers {first} to {end - 1} ({size})"


def _tables(mine, ideal, ours, theirs):
    """Say which chunk holds other shares than in the ideal."""
    if not (mine.chunks and ideal.chunks):
        return ""
    length = min(mine.bounds[-1], ideal.bounds[-1])
    firsts = sorted({*mine.bounds, *ideal.bounds})
    for rank in range(mine.world_size):
        for first in (place for place in firsts if place < length):
            one = ours.tables[rank, _chunk_at(mine, first)]
            other = theirs.tables[rank, _chunk_at(ideal, first)]
            if one != other:
                where = f"chunk {_chunk_at(ideal, first)} of rank {rank}"
                if ideal.chunks == 1:
                    where = f"rank {rank}"
                return (
                    f"afterwards {where} holds {_shares(one)}, and in the ideal "
                    f"{_shares(other)}."
                )
    return ""


def _chunk_at(film, place):
    return max(c for c in range(film.chunks) if film.bounds[c] <= place)


def _shares(counts):
    if counts is None:
        return "no whole sum of shares"
    ranks = [str(rank) for rank, count in enumerate(counts) for _ in range(count)]
    return f"the shares {'+'.join(ranks)}" if ranks else "nobody's share"
