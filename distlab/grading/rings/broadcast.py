"""The check for a broadcast that a learner wrote: who has it, after how many rounds."""

import math
from dataclasses import dataclass
from functools import partial

from distlab import collectives
from distlab.grading.check import WorldCheck
from distlab.grading.pictures import librarys, tree_seats
from distlab.grading.probes import broadcast_probe, with_root
from distlab.grading.rings.spread import Spread
from distlab.grading.salt import salted
from distlab.grading.tables import side_by_side

__all__ = ["BroadcastInRounds"]

_WORDS = {
    "unwritten": "Nothing of your own is written yet. Rank 0 has the tensor: who can "
    "have it after one round, and who after two?",
    "outside": "A rank was to talk to one that is not there. When a round has more "
    "senders than ranks left to serve, who of them sends?",
    "itself": "A rank is its own partner. Whoever has the tensor sends it to another "
    "rank, at a distance that changes by a factor of two from round to round.",
    "left": "A rank waits for a message that the other never sends, or never asks for. "
    "Write down for one round who sends to whom: do both name each other?",
    "all wait": "Everybody waits. In one round a rank sends, or receives, or has "
    "nothing to do; it receives once, and sends only after that.",
    "all swap": "Everybody waits. In a broadcast nothing comes back: whoever has the "
    "tensor sends, and its partner receives.",
    "dtype": "The buffer has another dtype than what arrives. Receive into the tensor "
    "itself.",
    "length": "Every message is the whole tensor. Receive into the tensor itself.",
}
_FROM_A_ROOT = {
    "outside": "A rank was to talk to one that is not there. Counted from the root, "
    "places go round: the partner is (rank + distance) % n.",
    "left": "A rank waits for a message that the other never sends, or never asks for. "
    "Places are counted from the root, and comm wants ranks: is one taken for another?",
    "all wait": "Everybody waits. Places go round, (rank - root) % n, and are never "
    "below 0. In one round a rank sends, or receives, or has nothing to do.",
    "itself": "A rank is its own partner. Places are counted from the root, and comm "
    "wants ranks: is one taken for another?",
}


@dataclass
class BroadcastInRounds(WorldCheck):
    """Every rank gets the root's tensor, in ceil(log2 n) rounds and n-1 messages.

    numbers: length of the tensor. root: handed to the function, or None if it takes no
    root and rank 0 is meant. Before the call the other ranks hold rubbish.
    """

    numbers: int = 5
    root: int | None = None

    _keeps_ranks = True
    _probe = staticmethod(broadcast_probe)

    @property
    def title(self):
        """Say what is tried."""
        root = "" if self.root is None else f", root {self.root}"
        plural = "s" * (self.numbers != 1)
        return f"{super().title}{root}, {self.numbers} number{plural}"

    @property
    def _words(self):
        return _WORDS | _FROM_A_ROOT if self.root else _WORDS

    @property
    def _source(self):
        return self.root or 0

    @property
    def _returns(self):
        return {"held": [float, self.numbers], "returned": str}

    def _arguments(self):
        return ((() if self.root is None else (self.root,)),)

    def _own_arguments(self):
        return [(numbers,) for numbers in self._inputs()]

    def _followed(self):
        function = partial(with_root, self.function, *self._arguments())
        return self._follow(function, self.numbers, self._has_it)

    def _has_it(self, rank, chunk):
        return rank == self._source

    def _ideals(self):
        tree = partial(collectives.tree_broadcast, root=self._source)
        how = {"numbers": self.numbers, "holds": self._has_it}
        return librarys(tree, tree_seats(self.world_size, self._source), **how)

    def _inputs(self):
        """Return the numbers of each rank: the root's, and rubbish, partly NaN."""
        n, length = self.world_size, self.numbers
        draw = salted("broadcast", n, length, self.root)
        pool = [float(x) for x in draw.sample(range(-9999, 10000), n * length)]
        inputs = [pool[rank * length : (rank + 1) * length] for rank in range(n)]
        for rank in range(n):
            if rank != self._source and length > 1:
                inputs[rank][-1] = math.nan
        return inputs

    def _compare(self, report):
        held = [_words(result["held"]) for result in report.results]
        began = [_words(numbers) for numbers in self._inputs()]
        spread = Spread.of(report.trace, self._source)
        for rank, words in enumerate(held):
            if words != began[self._source]:
                return self._wrong(rank, held, began, self._silent(report), spread)
        return (
            self._ready_made(report, "Every rank has it")
            or self._astray(spread)
            or self._too_long(report)
        )

    def _wrong(self, rank, held, began, silent, spread):
        """Return the verdict for a rank that ends with something else."""
        expected, yours = began[self._source], held[rank]
        pairs = enumerate(zip(expected, yours, strict=False))
        place = next((i for i, (right, word) in pairs if right != word), 0)
        found = side_by_side([(expected, words) for words in held], rank, place)
        if yours in began:
            owner = began.index(yours)
            whose = "it" if owner == rank else f"rank {owner}"
            found.append(f"Rank {rank} ends with what {whose} began with.")
        else:
            found.append(f"Rank {rank} ends with what no rank began with.")
        hint = silent.hint if silent else self._hint(rank, held, began, spread)
        return self._fail("\n".join(found), hint)

    def _hint(self, rank, held, began, spread):
        root = self._source
        if root and all(words == began[0] for words in held):
            return (
                f"Everybody has what rank 0 began with, and the root is rank {root}. "
                "Count from the root: place = (rank - root) % n."
            )
        if held[root] != began[root]:
            return (
                f"The root lost its own tensor. Rank {root} has it from the start and "
                "never receives."
            )
        if spread.early:
            src, dst = spread.early[0]
            rooted = " Count places from the root, modulo n." * bool(root)
            return (
                f"Rank {src} sends to rank {dst} before it has the tensor: what it "
                f"began with goes on. Who has the tensor in which round?{rooted}"
            )
        if spread.never:
            return self._hint_for_missed(spread.never)
        if held[rank] == began[rank]:
            return (
                f"Rank {rank} was sent the tensor, and its own is unchanged. "
                "comm.recv(tensor, ...) writes into the tensor; tensor = ... does not."
            )
        return (
            "The tensor arrives and is changed, before it is sent or afterwards. "
            "What was there before may be anything, also NaN: it is not to be added to."
        )

    def _hint_for_missed(self, never):
        told, n = f"Nobody sends to {_named(never)}", self.world_size
        if n & (n - 1):
            return (
                f"{told}. The number of ranks is no power of two here: the last round "
                "is not full, and has to be there all the same."
            )
        return (
            f"{told}. In every round each rank that has the tensor sends it to one "
            "that has not; how many rounds until all have it?"
        )

    def _astray(self, spread):
        """Return a verdict for messages that carried nothing new."""
        if spread.never:
            found = f"No message brought the tensor to {_named(spread.never)}."
            return self._fail(found, self._hint_for_missed(spread.never))
        if spread.early:
            src, dst = spread.early[0]
            return self._fail(
                f"Rank {src} sends to rank {dst} before it has the tensor itself.",
                "Only who has it can pass it on. Who has it in which round?",
            )
        if spread.again:
            n, extra = self.world_size, len(spread.again)
            return self._fail(
                f"{n - 1 + extra} messages, where {n - 1} are enough: rank "
                f"{spread.again[0]} is sent the tensor when it has it already.",
                "Each rank but the root receives exactly once. In which round is that, "
                "for this rank?",
            )
        return None

    def _too_long(self, report):
        """Return a verdict if it took more rounds than there have to be."""
        n = self.world_size
        ideal, rounds = (n - 1).bit_length(), report.trace.rounds()
        sent = [report.trace.messages_sent(rank) for rank in range(n)]
        if rounds > ideal:
            found = f"It took {rounds} rounds, where {ideal} are enough."
            return self._fail(found, _hint_for_rounds(sent, self._source))
        return self._one_at_a_time(report, ideal)


def _words(numbers):
    return [f"{number:g}" for number in numbers]


def _named(ranks):
    """Return "rank 2", "ranks 4 and 5" or "ranks 8, 9, 10, 11, 12, 13 and 42 more"."""
    names = [*map(str, ranks[:6]), *[f"{len(ranks) - 6} more"] * (len(ranks) > 6)]
    *most, last = names
    told = f"{', '.join(most)} and {last}" if most else last
    return f"rank{'s' * (len(ranks) > 1)} {told}"


def _hint_for_rounds(sent, root):
    if sent[root] == len(sent) - 1:
        return (
            f"Rank {root} sends to everybody itself, one after another. After the "
            "first round two ranks have the tensor: what can the second do meanwhile?"
        )
    if max(sent) == 1:
        return (
            "Each rank passes it on once, to the next: a chain. A rank that has the "
            "tensor can send again in the next round, to another one."
        )
    return (
        "Some ranks that have the tensor stand idle while others wait for it. If each "
        "that has it sends in every round, twice as many have it after every round."
    )
