"""The check for an all-gather that a learner wrote: which piece is where, and its cost.

A table names pieces by the rank that brought them, so that 1, 2, 3, 0 on a rank of four
means: all are there, and turned.
"""

import math
import operator
from dataclasses import dataclass
from functools import partial

from distlab.grading.check import WorldCheck
from distlab.grading.probes import all_gather_probe, in_chunks
from distlab.grading.salt import salted
from distlab.grading.tables import side_by_side

__all__ = ["AllGatherInRounds"]

_WORDS = {
    "unwritten": "Nothing of your own is written yet. After one round a rank has two "
    "pieces. Which can it send in the second round?",
    "outside": "A rank was to talk to one that is not there. With % n, counting goes "
    "round, and any number of ranks finds its partners.",
    "itself": "A rank is its own partner. Distances are 1, 2, 4 and so on, as far as "
    "they are below n.",
    "left": "A rank waits for a message that the other never sends, or never asks for. "
    "Does every rank make the same number of rounds, with any number of ranks?",
    "all swap": "Everybody waits. Who sends to rank + distance is a rank that receives "
    "from rank - distance: does each dst expect you as its src?",
    "length": "The message is longer or shorter than the room for it. How many pieces "
    "travel in this round? Both sides have to say the same, in the last round too.",
}
_LEGEND = "(a number is the rank whose piece is there; ? is no rank's piece)"


@dataclass
class AllGatherInRounds(WorldCheck):
    """Every rank fills its list, in ceil(log2 n) rounds, and sends n-1 pieces.

    numbers: length of each piece. Before the call a rank's own piece is there, in its
    place, and rubbish in all the others.
    """

    numbers: int = 3

    _keeps_ranks = True
    _probe = staticmethod(all_gather_probe)
    _words = _WORDS
    _made_from = "comm.sendrecv"

    @property
    def title(self):
        """Say what is tried."""
        return f"{super().title}, pieces of {self.numbers}"

    @property
    def _returns(self):
        held = [[float, self.numbers], self.world_size]
        return {"held": held, "listed": list, "returned": list}

    def _own_arguments(self):
        return [(pieces,) for pieces in self._inputs()]

    def _followed(self):
        gather = partial(in_chunks, self.function)
        return self._follow(gather, self.world_size * self.numbers, operator.eq)

    def _inputs(self):
        """Return, for each rank, its list: its own piece, and rubbish, partly NaN."""
        n, length = self.world_size, self.numbers
        draw = salted("all-gather", n, length)
        pool = [float(x) for x in draw.sample(range(-9999, 10000), n * length)]
        pieces = [pool[rank * length : (rank + 1) * length] for rank in range(n)]

        def rubbish():
            numbers = [float(draw.randrange(10_000, 100_000)) for _ in range(length)]
            return [*numbers[:-1], math.nan] if length > 1 else numbers

        return [
            [pieces[r] if r == rank else rubbish() for r in range(n)]
            for rank in range(n)
        ]

    def _compare(self, report):
        n, inputs = self.world_size, self._inputs()
        pieces = [inputs[rank][rank] for rank in range(n)]
        held = [_whose(result["held"], pieces) for result in report.results]
        expected = [str(rank) for rank in range(n)]
        for rank, words in enumerate(held):
            if words == expected:
                continue
            place = next(i for i, word in enumerate(words) if word != str(i))
            rows = [(expected, words) for words in held]
            found = [*side_by_side(rows, rank, place), _LEGEND]
            silent = self._silent(report)
            hint = (
                silent.hint
                if silent
                else _hint_for_elsewhere(report.results[rank], pieces)
                or _hint_for_pieces(rank, place, held, report.results, inputs)
            )
            return self._fail("\n".join(found), hint)
        return (
            self._ready_made(report, "The pieces are right")
            or self._traffic(report)
            or self._too_long(report)
        )

    def _traffic(self, report):
        """Return a verdict if a rank does not send just as many bytes as it has to."""
        n = self.world_size
        needed = (n - 1) * self.numbers * 4  # float32
        sent = [report.trace.bytes_sent(rank) for rank in range(n)]
        if all(count == needed for count in sent):
            return None
        lines = [f"rank {rank}: sent {count} bytes" for rank, count in enumerate(sent)]
        if n > 8:
            lines = [f"The ranks sent {min(sent)} to {max(sent)} bytes each."]
        lines.append(f"Each has {n - 1} pieces to send, {needed} bytes.")
        messages = report.trace.messages_sent(0)
        return self._fail("\n".join(lines), self._hint_for_bytes(sent, messages))

    def _hint_for_bytes(self, sent, messages):
        n, piece = self.world_size, self.numbers * 4
        if min(sent) == max(sent) == messages * n * piece:
            return (
                "Every message is the whole list. Which pieces does the sender have by "
                "then, and which of them are new to its partner?"
            )
        if max(sent) > 1.5 * min(sent):
            return (
                "One rank sends much more than another. In an all-gather everybody "
                "brings one piece and needs all the others: nobody is special."
            )
        if sum(sent) > n * (n - 1) * piece:
            return (
                "Some pieces go to ranks that have them. In the last round, how many "
                "are still missing? No more than those have to travel."
            )
        return "Less travels than an all-gather needs. Does everything go through comm?"

    def _too_long(self, report):
        """Return a verdict if it took more rounds than there have to be."""
        n, trace = self.world_size, report.trace
        ideal, rounds = (n - 1).bit_length(), trace.rounds()
        if rounds <= ideal:
            return self._one_at_a_time(report, ideal)
        partners = {event.peer for event in trace.of(0, "send")}
        return self._fail(
            f"The right bytes, in {rounds} rounds, where {ideal} are enough.",
            _hint_for_rounds(len(partners), trace.messages_sent(0)),
        )


def _whose(tensors, pieces):
    """Return for each tensor whose piece it is, as a word."""
    names = {tuple(piece): str(rank) for rank, piece in enumerate(pieces)}
    return [names.get(tuple(numbers), "?") for numbers in tensors]


def _hint_for_elsewhere(result, pieces):
    """Return a nudge if the right pieces are there, only not in the tensors given."""
    if result["listed"] == pieces:
        return (
            "Your list holds the right pieces, in new tensors, and whoever has the "
            "old ones sees nothing of it. pieces[i].copy_(...) writes into a tensor."
        )
    if result["returned"] == pieces:
        return (
            "The list that you return is right. Write it into the tensors of `pieces`: "
            "pieces[i].copy_(...)."
        )
    return ""


def _hint_for_pieces(rank, place, held, results, inputs):
    """Return a nudge for what is at `place` of the list of `rank`."""
    n = len(held)
    everyone = {str(r) for r in range(n)}
    if all(set(words) == everyone for words in held):
        return (
            "All pieces are there, in other places. Collected on the way, they come in "
            "an order that begins with the rank itself, another one on each rank; "
            "pieces[0] is for the piece of rank 0 on all of them."
        )
    if held[rank][rank] != str(rank):
        return (
            f"Rank {rank} lost its own piece. Nothing may be received or copied into "
            "pieces[rank]."
        )
    word, yours = held[rank][place], results[rank]["held"][place]
    if word != "?":
        return (
            f"pieces[{place}] of rank {rank} holds the piece of rank {word}. Which "
            "piece comes at which position of a message, and where does it belong?"
        )
    if _same(yours, inputs[rank][place]):
        return _hint_for_missing(rank, place, n)
    if any(_same(yours, other) for lists in inputs for other in lists):
        return (
            f"pieces[{place}] of rank {rank} is another rank's rubbish: it was sent "
            "on before that piece had come. Which pieces has a rank after k rounds?"
        )
    return (
        f"pieces[{place}] of rank {rank} holds what nobody had. Is a buffer used "
        "before it is filled, or a message cut at the wrong places?"
    )


def _hint_for_missing(rank, place, n):
    missing = f"pieces[{place}] of rank {rank} is as before: piece {place} never came"
    if n & (n - 1):
        return (
            f"{missing}. The number of ranks is no power of two here: after the last "
            "doubling some pieces are still missing, and one more message brings those."
        )
    return (
        f"{missing}. In each round a rank can send all that it has: how many pieces is "
        "that after one, two and three rounds?"
    )


def _hint_for_rounds(partners, messages):
    if partners == 1:
        return (
            "A ring: one piece in each round, always from the same neighbour. A rank "
            "that has two pieces could send both at once, to a rank further away."
        )
    if partners == messages:
        return (
            "Each message carries one piece, from the rank that brought it. After the "
            "first round a rank has two: torch.stack makes one message of several."
        )
    return (
        "Several messages for one partner in a round come one after another. "
        "torch.stack or torch.cat makes one message of several pieces."
    )


def _same(one, other):
    return [repr(x) for x in one] == [repr(x) for x in other]
