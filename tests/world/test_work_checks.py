"""Wrong answers to shared work and world sizes each meet the hint that fits.

The exercise's own variants are graded as notebooks; here are more, and quicker.
"""

import math
import time

import pytest
import torch

from distlab.grading import BalancedWork, BestWorldSize, SharedWork, grade
from distlab.grading.work.done import results_of

UNEVEN = [9, 8, 1, 1, 7, 1, 1, 1, 6, 1, 1, 1]


def collected(comm, part):
    if comm.rank:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(rank) for rank in range(1, comm.world_size))


def own_part(comm, tasks, work):
    return sum(map(work, tasks[comm.rank :: comm.world_size]))


def longest_first(comm, tasks, size_of):
    shares = [[] for _ in range(comm.world_size)]
    for task in sorted(tasks, key=size_of, reverse=True):
        min(shares, key=lambda share: sum(map(size_of, share))).append(task)
    return shares[comm.rank]


# ---- shared work ----------------------------------------------------------------


def everybody_everything(comm, tasks, work):
    return sum(map(work, tasks))


def never(comm, tasks, work):
    return 0


def rank_0_only_collects(comm, tasks, work):
    helpers = max(1, comm.world_size - 1)
    part = sum(map(work, tasks[comm.rank :: helpers])) if comm.rank else 0
    return collected(comm, part)


def helpers_only(comm, tasks, work):
    mine = tasks[comm.rank - 1 :: comm.world_size - 1]
    return collected(comm, sum(map(work, mine)) if comm.rank else 0)


def twice_itself(comm, tasks, work):
    own_part(comm, tasks, work)
    return collected(comm, own_part(comm, tasks, work))


def as_a_set(comm, tasks, work):
    return collected(comm, own_part(comm, sorted(set(tasks)), work))


def overlapping_blocks(comm, tasks, work):
    length = -(-len(tasks) // comm.world_size)
    mine = tasks[comm.rank * length : (comm.rank + 1) * length + 1]
    return collected(comm, sum(map(work, mine)))


def to_the_last_rank(comm, tasks, work):
    part = own_part(comm, tasks, work)
    if comm.rank:
        part += comm.recv_object(comm.rank - 1)
    if comm.rank + 1 < comm.world_size:
        comm.send_object(part, comm.rank + 1)
    return part


def skips_the_first(comm, tasks, work):
    return collected(comm, sum(map(work, tasks[comm.rank + 1 :: comm.world_size])))


def a_none(comm, tasks, work):
    collected(comm, own_part(comm, tasks, work))


def a_list(comm, tasks, work):
    return [collected(comm, own_part(comm, tasks, work))]


def not_added(comm, tasks, work):
    part = own_part(comm, tasks, work)
    collected(comm, part)
    return part


def replaced(comm, tasks, work):
    part = own_part(comm, tasks, work)
    if comm.rank:
        return comm.send_object(part, 0)
    for rank in range(1, comm.world_size):
        part = comm.recv_object(rank)
    return part


def forgets_itself(comm, tasks, work):
    part = own_part(comm, tasks, work)
    return collected(comm, part) - part if comm.rank == 0 else collected(comm, part)


def added_twice(comm, tasks, work):
    own = part = own_part(comm, tasks, work)
    if comm.rank + 1 < comm.world_size:
        part += comm.recv_object(comm.rank + 1)
    if comm.rank:
        return comm.send_object(part, comm.rank - 1)
    return part + own


def running_sums(comm, tasks, work):
    part, mine = 0, tasks[comm.rank :: comm.world_size]
    for task in mine:
        part += work(task)
        if comm.rank:
            comm.send_object(part, 0)
    if comm.rank:
        return None
    for rank in range(1, comm.world_size):
        part += sum(comm.recv_object(rank) for _ in tasks[rank :: comm.world_size])
    return part


def places(comm, tasks, work):
    return sum(map(work, range(len(tasks))))


def all_at_once(comm, tasks, work):
    return work(tasks)


def from_itself(comm, tasks, work):
    part = own_part(comm, tasks, work)
    return sum(comm.recv_object(rank) for rank in range(comm.world_size)) + part


def one_too_far(comm, tasks, work):
    part = own_part(comm, tasks, work)
    if comm.rank:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size + 1))


def all_wait(comm, tasks, work):
    arrived = comm.recv_object((comm.rank + 1) % comm.world_size)
    return own_part(comm, tasks, work) + arrived


def leaves_rank_3(comm, tasks, work):
    part = own_part(comm, tasks, work)
    if comm.rank:
        return comm.send_object(part, 0)
    return part + comm.recv_object(1) + comm.recv_object(2)


def another_kind(comm, tasks, work):
    part = torch.tensor([own_part(comm, tasks, work)])
    if comm.rank:
        return comm.send(part, 0)
    return part + sum(comm.recv(torch.zeros(1), r) for r in range(1, comm.world_size))


def in_steps_of_nothing(comm, tasks, work):
    length = len(tasks) // comm.world_size
    return sum(map(work, tasks[comm.rank * length :: length]))


def not_written(comm, tasks, work):
    raise NotImplementedError("write this step")


FOUR = 4, "abcdefgh"
SHARED = [
    (everybody_everything, FOUR, "Every rank does every task"),
    (never, FOUR, "never called"),
    (rank_0_only_collects, FOUR, "does nothing else"),
    (helpers_only, (1, "abc"), "Who works then?"),
    (rank_0_only_collects, (1, "abc"), "Who works then?"),
    (twice_itself, FOUR, "does the same task again"),
    (as_a_set, (3, "abcab"), "Tasks that are equal"),
    (overlapping_blocks, FOUR, "Two ranks take the same task"),
    (to_the_last_rank, FOUR, "In which direction"),
    (skips_the_first, FOUR, "Is every place there?"),
    (a_none, FOUR, "ends without a return"),
    (a_list, FOUR, "returns one number"),
    (not_added, FOUR, "is not added to its own part"),
    (replaced, FOUR, "replaces what is there"),
    (forgets_itself, FOUR, "The part of rank 0 itself is missing"),
    (added_twice, FOUR, "A part is added twice"),
    (running_sums, FOUR, "send only what is new"),
    (places, FOUR, "not its place in the list"),
    (all_at_once, FOUR, "not several tasks at once"),
    (from_itself, FOUR, "needs no message from itself"),
    (one_too_far, FOUR, "With which rank does your loop begin and end?"),
    (all_wait, FOUR, "Everybody waits"),
    (leaves_rank_3, FOUR, "From how many ranks does rank 0 receive?"),
    (another_kind, FOUR, "same length and dtype"),
    (in_steps_of_nothing, (5, "ab"), "len(tasks) // comm.world_size is 0"),
    (not_written, FOUR, "Nothing of your own"),
]


@pytest.mark.parametrize("function, case, hint", SHARED)
def test_a_mistake_in_shared_work_meets_the_hint_that_fits(function, case, hint):
    verdict = SharedWork(function, *case).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_a_verdict_shows_per_rank_what_was_done_and_where_it_differs_first():
    table = SharedWork(replaced, *FOUR).judge().found.splitlines()
    results = results_of(list(FOUR[1]))
    yours, whole = results["d"] + results["h"], sum(results.values())
    assert table == [
        f"Rank 0 returned {yours:,}, and all results make {whole:,}.",
        "  rank  tasks done  in your sum",
        "     0  a e         missing      ← first difference",
        "     1  b f         missing",
        "     2  c g         missing",
        "     3  d h         once",
    ]


@pytest.mark.parametrize(
    "kind", [int, float, torch.tensor, torch.tensor([1]).new_tensor]
)
def test_a_sum_may_be_any_kind_of_number(kind):
    def of_a_kind(comm, tasks, work):
        total = collected(comm, own_part(comm, tasks, work))
        return kind(total) if comm.rank == 0 else None

    assert SharedWork(of_a_kind, *FOUR).judge().outcome == "pass"


# ---- balanced work --------------------------------------------------------------


def last_rank(comm, tasks, work, size_of):
    last = comm.rank == comm.world_size - 1
    return collected(comm, sum(map(work, tasks)) if last else 0)


def sorted_and_dealt(comm, tasks, work, size_of):
    return collected(comm, own_part(comm, sorted(tasks, key=size_of)[::-1], work))


def smallest_first(comm, tasks, work, size_of):
    shares, loads = [[] for _ in range(comm.world_size)], [0] * comm.world_size
    for task in sorted(tasks, key=size_of):
        rank = loads.index(min(loads))
        shares[rank].append(task)
        loads[rank] += size_of(task)
    return collected(comm, sum(map(work, shares[comm.rank])))


def filled_up(comm, tasks, work, size_of):
    room = sum(map(size_of, tasks)) / comm.world_size
    rank, load, part = 0, 0, 0
    for task in tasks:
        if load >= room and rank + 1 < comm.world_size:
            rank, load = rank + 1, 0
        load += size_of(task)
        part += work(task) if rank == comm.rank else 0
    return collected(comm, part)


def by_name(comm, tasks, work, size_of):
    mine = [task for task in tasks if (ord(task) + (task > "f")) % 4 == comm.rank]
    return collected(comm, sum(map(work, mine)))


def told_by_rank_0(comm, tasks, work, size_of):
    mine = longest_first(comm, tasks, size_of)
    for rank in range(1, comm.world_size):
        if comm.rank == 0:
            comm.send_object("begin", rank)
        elif comm.rank == rank:
            comm.recv_object(0)
    return collected(comm, sum(map(work, mine)))


def to_everybody(comm, tasks, work, size_of):
    total = collected(comm, sum(map(work, longest_first(comm, tasks, size_of))))
    for rank in range(1, comm.world_size):
        if comm.rank == 0:
            comm.send_object(total, rank)
        elif comm.rank == rank:
            total = comm.recv_object(0)
    return total


def one_by_one(comm, tasks, work, size_of):
    mine = longest_first(comm, tasks, size_of)
    if comm.rank == 0:
        counts = [comm.recv_object(rank) for rank in range(1, comm.world_size)]
        arrived = [
            comm.recv_object(r) for r, k in enumerate(counts, 1) for _ in range(k)
        ]
        return sum(map(work, mine)) + sum(arrived)
    comm.send_object(len(mine), 0)
    for task in mine:
        comm.send_object(work(task), 0)
    return None


THREE = 3, [6, 6, 1, 5, 12, 6]
BALANCED = [
    (last_rank, THREE, "One rank does everything"),
    (sorted_and_dealt, THREE, "To sort the tasks is half of it"),
    (smallest_first, THREE, "To sort the tasks is half of it"),
    (filled_up, THREE, "takes neighbours of the list"),
    (by_name, (4, UNEVEN), "Keep for every rank the seconds"),
    (told_by_rank_0, (4, UNEVEN), "Nobody has to be told"),
    (to_everybody, (4, UNEVEN), "Nobody has to be told"),
    (one_by_one, (4, UNEVEN), "A message per task"),
]


@pytest.mark.parametrize("function, case, hint", BALANCED)
def test_a_mistake_in_balanced_work_meets_the_hint_that_fits(function, case, hint):
    verdict = BalancedWork(function, *case).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_loads_are_shown_with_the_sizes_they_come_from():
    assert BalancedWork(filled_up, *THREE).judge().found.splitlines() == [
        "  rank  tasks done    load",
        "     0  a:6 b:6       12 s",
        "     1  c:1 d:5 e:12  18 s  ← the largest load",
        "     2  f:6           6 s",
        "No assignment can get below 12 s, and up to 4/3 of that is allowed, 16 s.",
    ]


# ---- the best world size --------------------------------------------------------


def time_s(job, n):
    serial_s, parallel_s, message_s, _ = job
    return serial_s + parallel_s / n + message_s * (n - 1)


def root(*job):
    return math.sqrt(job[1] / job[2]) if job[2] else job[3]


def with_speed_up(job, n):
    return n, time_s(job, 1) / time_s(job, n)


def forever(*job):
    while True:
        time.sleep(0.1)


PLAIN = 2, 100, 0.5, 64  # 14 ranks are best
WRONG_SIZES = [
    (lambda *job: not_written(*job[:3]), PLAIN, "Nothing of your own"),
    (lambda *job: round(root(*job)), PLAIN, "Return two numbers"),
    (lambda *job: None, PLAIN, "Return two numbers"),
    (lambda *job: (14, "6.52"), PLAIN, "Return two numbers"),
    (lambda *job: with_speed_up(job, 14)[::-1], PLAIN, "The world size comes first"),
    (lambda *job: with_speed_up(job, root(*job)), PLAIN, "is an int"),
    (lambda *job: with_speed_up(job, 14.0), PLAIN, "is an int"),
    (lambda *job: with_speed_up(job, 13), PLAIN, "compare T on both sides"),
    (lambda *job: with_speed_up(job, 15), PLAIN, "compare T on both sides"),
    (lambda *job: with_speed_up(job, 64), PLAIN, "not always faster"),
    (lambda *job: with_speed_up(job, 9), PLAIN, "What does it save"),
    (lambda *job: with_speed_up(job, 3), (1, 6, 1, 9), "the smallest one is asked"),
    (lambda *job: with_speed_up(job, 14), (2, 100, 0.5, 8), "and no more"),
    (lambda *job: (0, 1.0), (1, 1, 4, 8), "The smallest world has one"),
    (lambda *job: with_speed_up(job, 0), (1, 1, 4, 8), "The smallest world has one"),
    (lambda *job: (14, time_s(job, 14) / time_s(job, 1)), PLAIN, "This is T(n)/T(1)"),
    (lambda *job: (14, time_s(job, 14)), PLAIN, "T(n) itself"),
    (lambda *job: (14, 6.5), PLAIN, "rounded"),
    (lambda *job: (14, 102 / (2 + 100 / 14)), PLAIN, "all three terms"),
    (lambda *job: job[1] / job[2], (1, 10, 0, 16), "Messages can cost nothing"),
    (lambda *job: int(math.inf), (1, 10, 0, 16), "Messages can cost nothing"),
    (lambda *job: bytearray(2**60), PLAIN, "A list of all world sizes"),
    (lambda *job: with_speed_up(job, unknown), PLAIN, "Is the name spelled right"),  # noqa: F821
]


@pytest.mark.parametrize("function, job, hint", WRONG_SIZES)
def test_a_wrong_world_size_meets_the_hint_that_fits(function, job, hint):
    verdict = BestWorldSize(function, *job).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_a_size_that_is_no_int_looks_like_none():
    verdict = BestWorldSize(lambda *job: with_speed_up(job, 14.0), *PLAIN).judge()
    rows = [line.split() for line in verdict.found.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["expected", "14"], ["yours", "14.0"]]


def test_an_answer_that_never_comes_ends_the_cell_all_the_same(capsys):
    began = time.monotonic()
    assert grade(3, [BestWorldSize(forever, 1, 400, 1, 10**12)]) == 0.0
    assert time.monotonic() - began < 15
    said = capsys.readouterr().out
    assert "no answer within 5 s" in said and "Do not try them all" in said


def test_a_world_size_may_be_of_numpy_or_torch():
    def of_torch(*job):
        n, speed_up = with_speed_up(job, 14)
        return torch.tensor(n), torch.tensor(speed_up, dtype=torch.float64)

    assert BestWorldSize(of_torch, *PLAIN).judge().outcome == "pass"


def test_a_rank_that_does_not_start_decides_nothing(monkeypatch):
    monkeypatch.setattr("distlab.launch.ranks._START_S", 0.0)
    verdict = SharedWork(everybody_everything, *FOUR).judge()
    assert verdict.outcome == "inconclusive"
    assert "did not start" in verdict.found
