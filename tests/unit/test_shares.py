"""Shares are read exactly from what two runs saw, or not at all."""

import itertools
import math
import random

import numpy as np
import pytest

from distlab.trace import Shares, counts_in


class Player:
    """One rank of a run on paper: its numbers, and what `WatchedComm` would note."""

    def __init__(self, rank, length, by_place):
        weight = np.full(length, 8.0**rank)
        self.numbers = np.arange(4097.0, 4096.0 + length + 1) if by_place else weight
        self.held, self.sent, self.steps = [], [], 0
        self.done()

    def send(self, peer, numbers):
        self.sent.append((peer, np.array(numbers, dtype=float).ravel().tolist()))

    def done(self):
        """End a call: the numbers are looked at."""
        self.held.append((self.steps, self.numbers.tolist()))
        self.steps += 1


def shares_of(play, n, length):
    """Return the shares of `play(ranks)`, played on weights and on places."""
    records = []
    for by_place in (False, True):
        ranks = [Player(rank, length, by_place) for rank in range(n)]
        play(ranks)
        records.append([{"held": rank.held, "sent": rank.sent} for rank in ranks])
    return Shares.read(*records)


def only(n, *ranks):
    """Return the counts of a sum of the shares of `ranks`, each as often as named."""
    return tuple(ranks.count(rank) for rank in range(n))


def last(shares, rank):
    return shares.held[rank][-1][1]


# ---- one number -----------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 8, 17])
def test_octal_digits_are_how_often_each_share_is_in_it(n):
    dice = random.Random(n)
    for _ in range(200):
        counts = tuple(dice.randrange(8) for _ in range(n))
        value = sum(count * 8**rank for rank, count in enumerate(counts))
        assert counts_in(float(value), n) == counts


@pytest.mark.parametrize("value", [-1.0, 0.5, 1e-9, math.nan, math.inf, -math.inf])
def test_what_is_no_whole_positive_number_is_no_sum(value):
    assert counts_in(value, 4) is None


def test_a_share_of_a_rank_that_is_not_there_is_no_sum():
    assert counts_in(8.0**4, 4) is None
    assert counts_in(8.0**4 - 1, 4) == (7, 7, 7, 7)


# ---- tables ---------------------------------------------------------------------


def test_inputs_are_one_chunk_of_which_every_rank_has_its_own_share():
    shares = shares_of(lambda ranks: None, 3, 10)
    assert shares.bounds == [0, 10] and shares.chunks == 1 and shares.sent == {}
    assert [shares.after(rank, 0) for rank in range(3)] == [
        ((1, 0, 0),),
        ((0, 1, 0),),
        ((0, 0, 1),),
    ]


def test_a_rank_holds_after_a_step_what_its_last_call_until_then_left():
    def play(ranks):
        ranks[0].steps = 3
        ranks[0].numbers += ranks[1].numbers
        ranks[0].done()
        ranks[0].steps = 7
        ranks[0].numbers += ranks[1].numbers
        ranks[0].done()

    shares = shares_of(play, 2, 4)
    found = [shares.after(0, step)[0] for step in (0, 2, 3, 6, 7, 99)]
    assert found == [(1, 0), (1, 0), (1, 1), (1, 1), (1, 2), (1, 2)]
    assert shares.after(1, 99) == ((0, 1),)


def halved(numbers):
    numbers /= 2


def shifted(numbers):
    numbers[:] = np.roll(numbers, 1)


CHANGES = {
    "averaged": halved,
    "negative": lambda numbers: np.negative(numbers, out=numbers),
    "not a number": lambda numbers: numbers.fill(math.nan),
    "infinite": lambda numbers: numbers.fill(math.inf),
    "left over in memory": lambda numbers: numbers.fill(3e-41),
    "scaled to the next rank's weight": lambda numbers: np.multiply(
        numbers, 8, out=numbers
    ),
    "divided to the rank before's weight": lambda numbers: np.divide(
        numbers, 8, out=numbers
    ),
    "constant": lambda numbers: numbers.fill(9.0),
    "moved by one place": shifted,
    "backwards": lambda numbers: numbers.__setitem__(slice(None), numbers[::-1].copy()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_sum_of_shares_at_its_place_is_told_as_none(change):
    def play(ranks):
        CHANGES[change](ranks[1].numbers)
        ranks[1].done()

    assert set(last(shares_of(play, 3, 10), 1)) == {None}


def test_a_full_sum_divided_by_the_ranks_is_none_though_its_places_agree():
    def play(ranks):
        ranks[0].numbers[:] = sum(rank.numbers for rank in ranks) / 3
        ranks[0].done()

    assert last(shares_of(play, 3, 10), 0) == (None,)


def test_a_chunk_in_another_chunks_place_is_none_and_the_rest_is_told():
    def play(ranks):
        ranks[0].numbers[2:4] = ranks[1].numbers[0:2]
        ranks[0].done()

    shares = shares_of(play, 2, 6)
    assert shares.bounds == [0, 2, 4, 6]
    assert last(shares, 0) == ((1, 0), None, (1, 0))


def test_zeros_are_nobodys_share():
    def play(ranks):
        ranks[0].numbers[3:] = 0
        ranks[0].done()

    assert last(shares_of(play, 2, 5), 0) == ((1, 0), (0, 0))


def test_eight_times_a_share_is_not_taken_for_the_next_ranks():
    def play(ranks):
        ranks[0].numbers += 7 * ranks[0].numbers
        ranks[0].done()

    assert last(shares_of(play, 2, 5), 0) == (None,)


# ---- chunks and messages --------------------------------------------------------


@pytest.mark.parametrize(
    "length, bounds", [(10, [0, 3, 6, 8, 10]), (3, [0, 1, 2, 3]), (1, [0, 1])]
)
def test_chunks_are_cut_where_messages_begin_and_end(length, bounds):
    cuts = [0, *itertools.accumulate(length // 4 + (k < length % 4) for k in range(4))]

    def play(ranks):
        for rank in range(4):
            part = slice(cuts[rank], cuts[rank + 1])
            ranks[rank].send((rank + 1) % 4, ranks[rank].numbers[part])

    shares = shares_of(play, 4, length)
    assert shares.bounds == bounds
    for rank in range(4):
        (payload,) = shares.sent[rank, (rank + 1) % 4]
        full = rank < shares.chunks
        assert payload.chunks == ((rank,) if full else ())
        assert payload.counts == ((only(4, rank),) if full else ())


def test_a_copy_is_located_as_a_view_is():
    def play(ranks):
        ranks[0].send(1, ranks[0].numbers[4:7].copy())
        ranks[0].send(1, ranks[0].numbers[4:7] + ranks[1].numbers[4:7])

    shares = shares_of(play, 2, 10)
    assert shares.bounds == [0, 4, 7, 10]
    assert shares.sent == {(0, 1): [((1,), ((1, 0),)), ((1,), ((1, 1),))]}


def test_messages_that_overlap_are_cut_at_all_their_ends():
    def play(ranks):
        ranks[0].send(1, ranks[0].numbers[0:6])
        ranks[1].send(0, ranks[1].numbers[4:10])

    shares = shares_of(play, 2, 12)
    assert shares.bounds == [0, 4, 6, 10, 12]
    assert shares.sent[0, 1][0].chunks == (0, 1)
    assert shares.sent[1, 0][0].chunks == (1, 2)


def test_every_other_number_is_located_number_by_number():
    def play(ranks):
        ranks[0].send(1, ranks[0].numbers[::2])

    shares = shares_of(play, 2, 5)
    assert shares.bounds == [0, 1, 2, 3, 4, 5]
    assert shares.sent[0, 1] == [((0, 2, 4), ((1, 0),) * 3)]


def test_messages_keep_the_order_in_which_each_pair_sent_them():
    def play(ranks):
        for part in (slice(6, 8), slice(0, 3), slice(3, 6)):
            ranks[0].send(1, ranks[0].numbers[part])
            ranks[0].send(2, ranks[0].numbers[part][::-1])

    shares = shares_of(play, 3, 8)
    there = [payload.chunks for payload in shares.sent[0, 1]]
    assert there == [(6, 7), (0, 1, 2), (3, 4, 5)]
    assert [payload.chunks for payload in shares.sent[0, 2]] == [
        chunks[::-1] for chunks in there
    ]


@pytest.mark.parametrize(
    "numbers",
    [[0.0], [-5.0], [math.nan, math.inf], [0.5], [64.0], [8.0**3 * 7], [1e30]],
)
def test_a_message_that_is_no_part_of_the_tensor_is_told_without_a_place(numbers):
    shares = shares_of(lambda ranks: ranks[0].send(1, numbers), 4, 40)
    assert shares.bounds == [0, 40]
    assert shares.sent == {(0, 1): [((), ())]}


def test_garbage_in_a_message_leaves_the_rest_of_it_known():
    def play(ranks):
        numbers = ranks[0].numbers.copy()
        numbers[2:4] = math.nan
        ranks[0].send(1, numbers)

    shares = shares_of(play, 2, 6)
    assert shares.bounds == [0, 2, 4, 6]
    assert shares.sent[0, 1] == [((0, 2), ((1, 0), (1, 0)))]


def test_a_message_that_only_one_run_sent_is_not_told():
    def play(ranks):
        if ranks[0].numbers[0] == ranks[0].numbers[-1]:
            ranks[0].send(1, ranks[0].numbers)

    assert shares_of(play, 2, 4).sent == {}


# ---- anything -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_any_adding_and_copying_is_read_back_exactly(seed):
    dice = random.Random(seed)
    n, length = dice.randint(1, 8), dice.randint(1, 30)
    moves = []
    for _ in range(dice.randint(1, 25)):
        to, of = dice.randrange(n), dice.randrange(n)
        part = slice(*sorted(dice.choices(range(length + 1), k=2)))
        moves.append((dice.choice(["add", "copy", "zero"]), to, of, part))

    truth = np.zeros((n, length, n), dtype=int)
    for rank in range(n):
        truth[rank, :, rank] = 1
    kept, seen = [], [truth.copy()]
    for move in moves:
        what, to, of, part = move
        after = truth.copy()
        other = truth[of, part] if what != "zero" else 0
        after[to, part] = other + (truth[to, part] if what == "add" else 0)
        if after.max() <= 7:
            kept.append((move, truth[of, part].copy()))
            truth = after
            seen.append(truth.copy())

    def play(ranks):
        for (what, to, of, part), _ in kept:
            ranks[of].send(to, ranks[of].numbers[part])
            arrived = ranks[of].numbers[part] * (what != "zero")
            here = ranks[to].numbers[part] * (what == "add")
            ranks[to].numbers[part] = arrived + here
            ranks[to].done()

    shares = shares_of(play, n, length)
    for rank in range(n):
        table = last(shares, rank)
        for chunk, (a, b) in enumerate(itertools.pairwise(shares.bounds)):
            for place in range(a, b):
                assert table[chunk] == tuple(truth[rank, place])
    sent = {key: iter(payloads) for key, payloads in shares.sent.items()}
    for (_, to, of, part), carried in kept:
        payload, described = next(sent[of, to]), {}
        for chunk, counts in zip(*payload, strict=True):
            for place in range(*shares.bounds[chunk : chunk + 2]):
                described[place] = counts
        places = range(length)[part]
        expected = dict(zip(places, map(tuple, carried), strict=True))
        assert described == {place: c for place, c in expected.items() if any(c)}
    edges = {edge for (*_, part), _ in kept for edge in (part.start, part.stop)}
    differs = {
        place
        for tables in seen
        for place in range(1, length)
        if (tables[:, place] != tables[:, place - 1]).any()
    }
    assert differs <= {*shares.bounds} <= edges | differs | {0, length}
