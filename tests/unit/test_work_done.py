"""What a check reads from calls, sums and loads, held to what can be tried out."""

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from distlab.grading.work.done import (
    alike,
    dealt,
    in_a_row,
    miscounts_told,
    most_even,
    parts_in,
    results_in,
    results_of,
    surplus,
    to_the_least_loaded,
    undone,
)

ROOT = Path(__file__).parents[2]
ALLOWED = 4 / 3


def cells_of(stem):
    path = ROOT / "solutions" / stem / f"{stem}.ipynb"
    cells = json.loads(path.read_text())["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def balanced_cases(hidden=True):
    """Return (world_size, sizes) of each case of step 2, the hidden ones or not."""
    cells, names = cells_of("01_why_distribute"), {}
    checked = cells["step-two-check"].split("### BEGIN" if not hidden else "grade(")[0]
    exec(cells["uneven"].split("\n")[0] + "\n" + checked, names)
    return names["cases"]


def cut(tasks, edges):
    return [tasks[a:b] for a, b in itertools.pairwise(edges)]


def blocks(tasks, n):
    """Return the ways in which people cut n blocks of nearly equal length."""
    m, up, down = len(tasks), -(-len(tasks) // n), len(tasks) // n
    yield cut(tasks, [min(rank * up, m) for rank in range(n + 1)])
    yield cut(tasks, [*(rank * down for rank in range(n)), m])
    yield cut(tasks, [m * rank // n for rank in range(n + 1)])
    yield cut(tasks, [rank * down + min(rank, m % n) for rank in range(n + 1)])


def largest(shares):
    return max(map(sum, shares))


CARELESS = {
    "blocks rounded up": lambda sizes, n: list(blocks(sizes, n))[0],  # noqa: RUF015
    "the rest to the last": lambda sizes, n: list(blocks(sizes, n))[1],
    "blocks between rounded edges": lambda sizes, n: list(blocks(sizes, n))[2],
    "blocks that differ by one": lambda sizes, n: list(blocks(sizes, n))[3],
    "dealt": dealt,
    "sorted and dealt": lambda sizes, n: dealt(sorted(sizes, reverse=True), n),
    "to the least loaded": to_the_least_loaded,
    "smallest first": lambda sizes, n: to_the_least_loaded(sorted(sizes), n),
}


@pytest.mark.parametrize("n, sizes", balanced_cases())
def test_longest_first_is_well_within_the_limit_in_every_case(n, sizes):
    shares = to_the_least_loaded(sorted(sizes, reverse=True), n)
    assert largest(shares) <= 0.85 * ALLOWED * most_even(sizes, n)


@pytest.mark.parametrize("way", CARELESS)
def test_each_careless_way_is_well_above_the_limit_in_a_case_that_is_shown(way):
    ratios = [
        largest(CARELESS[way](sizes, n)) / (ALLOWED * most_even(sizes, n))
        for n, sizes in balanced_cases(hidden=False)
        if sizes
    ]
    assert max(ratios) > 1.1


@pytest.mark.parametrize("seed", range(40))
def test_no_assignment_of_all_gets_below_the_most_even_load(seed):
    dice = random.Random(seed)
    n, sizes = (
        dice.randint(1, 4),
        [dice.randint(0, 9) for _ in range(dice.randint(0, 6))],
    )
    best = min(
        max(
            sum(s for s, r in zip(sizes, ranks, strict=True) if r == k)
            for k in range(n)
        )
        for ranks in itertools.product(range(n), repeat=len(sizes))
    )
    assert most_even(sizes, n) <= best <= largest(to_the_least_loaded(sizes, n))


@pytest.mark.parametrize("seed", range(40))
def test_every_task_that_was_not_done_as_often_as_it_is_listed_is_found(seed):
    dice = random.Random(seed)
    tasks = dice.choices("abcdef", k=dice.randint(0, 8))
    n = dice.randint(1, 4)
    done = [dice.choices(tasks or ["a"], k=dice.randint(0, 3)) for _ in range(n)]
    done = done if tasks else [[]] * n
    times = Counter(itertools.chain(*done))
    often, never = surplus(tasks, done), undone(tasks, done)
    assert set(often) == {t for t in tasks if times[t] > tasks.count(t)}
    assert set(never) == {t for t in tasks if times[t] < tasks.count(t)}
    assert bool(miscounts_told(tasks, done)) == (
        sorted(tasks) != sorted(times.elements())
    )


def test_what_was_miscounted_is_told_with_who_did_it():
    done = [["a", "b"], ["b", "c"], ["e", "e"]]
    assert miscounts_told(list("abcde"), done) == [
        "Task b was done by ranks 0 and 1.",
        "Task d was done by nobody.",
        "Task e was done by rank 2 (2 times).",
    ]
    assert miscounts_told(list("abab"), [["a", "b"], []]) == [
        "Tasks a and b were done by rank 0, and the list has each 2 times."
    ]


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_a_sum_of_ranks_parts_tells_how_often_each_is_in_it(n):
    dice = random.Random(n)
    parts = [4**rank * dice.randint(1, 3) for rank in range(n)]
    for _ in range(20):
        times = tuple(dice.randint(0, 2) for _ in range(n))
        total = sum(t * part for t, part in zip(times, parts, strict=True))
        found = parts_in(total, parts)
        assert sum(t * p for t, p in zip(found, parts, strict=True)) == total
        assert found.count(1) >= times.count(1)
    assert parts_in(0.5, parts) is None


def test_a_sum_tells_how_often_each_result_is_in_it():
    results = results_of(list("abcd"))
    total = sum(
        times * results[task] for task, times in {"a": 2, "b": 1, "d": 3}.items()
    )
    assert results_in(total, list("abcd")) == {"a": 2, "b": 1, "c": 0, "d": 3}


@pytest.mark.parametrize("total", [-1, 0.5, 4**4, 3, 0])
def test_what_explains_no_sum_is_not_read_as_one(total):
    assert results_in(total, list("abcd")) is None


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("m", [6, 8, 11, 12])
def test_blocks_and_dealing_are_told_apart_whichever_rank_has_which(m, n):
    tasks = list("abcdefghijkl"[:m])
    assert alike(dealt(tasks, n)[::-1], dealt(tasks, n))
    assert not in_a_row(tasks, dealt(tasks, n))
    for shares in blocks(tasks, n):
        assert in_a_row(tasks, shares[::-1]) and not alike(shares, dealt(tasks, n))
