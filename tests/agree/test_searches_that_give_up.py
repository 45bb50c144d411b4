"""A search without a memory that gives up knows nothing, in whatever order it looks."""

import random
from itertools import pairwise

import pytest

from distlab.grading import LinearizableWithUnknown, salt
from distlab.grading.agreement.orders import searched
from distlab.grading.agreement.thrashing import thrashing

NEVER = float("inf")


class Search:
    """A depth-first search without a memory, which gives up after so many steps.

    order: (number, search) -> what to try first. A read is taken as soon as it fits,
    and not taken back, if eager; that is always safe.
    """

    def __init__(self, operations, order, eager, limit):
        answered = [one for one in operations if one.outcome == "ok"]
        lost = [one for one in operations if one.outcome == "unknown"]
        kept = answered + [one for one in lost if one.op == "write"]
        kept.sort(key=lambda one: one.start)
        self.start = [one.start for one in kept]
        self.end = [NEVER if one.end is None else one.end for one in kept]
        self.writes = [one.op == "write" for one in kept]
        self.value = [one.value if one.op == "write" else one.result for one in kept]
        self.by_end = sorted(range(len(kept)), key=lambda n: self.end[n])
        self.undone = [True] * len(kept)
        self.draw = random.Random(len(kept))
        self.order, self.eager, self.left = order, eager, limit

    def waiting(self, value):
        """Return the reads of a value that are not done yet."""
        undone = zip(self.undone, self.writes, self.value, strict=True)
        return [n for n, told in enumerate(undone) if told == (True, False, value)]

    def says(self, value=None):
        """Return whether there is an order of what is left; None if it gives up."""
        self.left -= 1
        if self.left < 0:
            return None
        self.first_end = next(
            (self.end[n] for n in self.by_end if self.undone[n]), NEVER
        )
        if self.first_end == NEVER:
            return True
        for n in self._choices(value):
            self.undone[n] = False
            said = self.says(self.value[n])
            self.undone[n] = True
            if said is not False:
                return said
        return False

    def _choices(self, value):
        fit = []
        for n, start in enumerate(self.start):
            if start > self.first_end:
                break
            if self.undone[n] and (self.writes[n] or self.value[n] == value):
                if self.eager and not self.writes[n]:
                    return [n]
                fit.append(n)
        return sorted(fit, key=lambda n: self.order(n, self))


def wanted_now(n, search):
    reads = search.waiting(search.value[n])
    pending = any(search.start[read] <= search.first_end for read in reads)
    return search.writes[n], not pending, search.end[n]


def due(n, search):
    """When the value has to be there, for the read of it that ends first."""
    reads = search.waiting(search.value[n])
    return min((search.end[read] for read in reads), default=NEVER)


ORDERS = {
    "by starts": lambda n, search: n,
    "latest start": lambda n, search: -n,
    "by ends": lambda n, search: search.end[n],
    "latest end": lambda n, search: -search.end[n],
    "random": lambda n, search: search.draw.random(),
    "writes first": lambda n, search: not search.writes[n],
    "wanted now": wanted_now,
    "due first": lambda n, search: (search.writes[n], due(n, search)),
    "due last": lambda n, search: (search.writes[n], -due(n, search)),
}


@pytest.fixture(scope="module")
def drawn():
    """Give, for each of three salts, the hard histories that have an order."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for number in range(3):
            patch.setattr(salt, "_salt", f"salt {number}")
            histories = LinearizableWithUnknown(None, "sixty", None)._histories(number)
            found.append(list(filter(searched, histories[40:])))
    return found


def gives_up_on_one(histories, *how):
    return any(Search(history, *how).says() is None for history in histories)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", ORDERS)
def test_in_no_order_all_are_found_in_a_few_steps(name, eager, drawn):
    for histories in drawn:
        assert len(histories) == 4
        assert gives_up_on_one(histories, ORDERS[name], eager, 15_000)


@pytest.mark.parametrize("name", ["by starts", "by ends", "random", "wanted now"])
def test_nor_in_many(name, drawn):
    assert gives_up_on_one(drawn[0], ORDERS[name], True, 200_000)


def test_what_is_found_without_a_memory_is_right():
    said = []
    for history in LinearizableWithUnknown(None, "short", 1)._histories(1)[::9]:
        for order in ORDERS.values():
            said.append(Search(history, order, True, 10**6).says())
            assert said[-1] == searched(history)
    assert 0.3 < sum(said) / len(said) < 0.8


def test_each_is_what_it_says_and_each_client_does_one_thing_at_a_time():
    for number in range(20):
        history = thrashing(random.Random(number), right=number % 2 == 0)
        assert searched(history) == (number % 2 == 0)
        assert 60 < len(history) <= 100
        assert [one.start for one in history] == sorted(one.start for one in history)
        for client in {one.client for one in history}:
            own = [one for one in history if one.client == client]
            for one, after in pairwise(own):
                assert (one.start if one.end is None else one.end) < after.start


def test_no_two_of_them_look_alike():
    def look(history):
        return tuple(one.op for one in history), len({one.client for one in history})

    looks = {look(thrashing(random.Random(number), True)) for number in range(60)}
    assert len(looks) > 55
