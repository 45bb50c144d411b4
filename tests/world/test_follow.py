"""`follow` on real ranks says whose share is where, in every step."""

import pytest
import torch
import torch.distributed as dist
from soaks import nightly

from distlab import Deadlock, InvalidArgument, RankRaised, follow
from distlab.collectives import (
    bruck_all_gather,
    naive_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
    tree_broadcast,
)
from distlab.collectives.chunks import chunk_lengths, split
from distlab.links import LINKS
from distlab.show import compare, player
from distlab.show.player.animation import Animation
from distlab.simulated import Uniform

FABRIC = Uniform(LINKS["InfiniBand NDR"])
RIGHT = [naive_all_reduce, tree_all_reduce, ring_all_reduce]


def frames_of(fn, n=3, **options):
    return Animation(follow(fn, n, **options).trace).frames


def ranks_in(counts):
    """Return whose shares counts say are there, each as often as it is."""
    return [rank for rank, count in enumerate(counts) for _ in range(count)]


@pytest.mark.parametrize(("n", "place"), [
    *((n, {}) for n in (2, 4)),
    *((n, {"fabric": FABRIC}) for n in (1, 3, 7)),
    *(nightly(n, {}) for n in (1, 3, 7)),
])  # fmt: skip
@pytest.mark.parametrize("fn", RIGHT, ids=lambda fn: fn.__name__)
def test_at_the_end_every_chunk_holds_every_share_once(fn, n, place):
    for numbers in (1, 3, 10, 40):
        trace = follow(fn, n, numbers=numbers, **place).trace
        animation, bounds = Animation(trace), trace.shares.bounds
        tables = animation.frames[-1].tables
        assert set(tables.values()) == {(1,) * n}
        assert set(tables) == {
            (r, c) for r in range(n) for c in range(animation.chunks)
        }
        lengths = [length for length in chunk_lengths(numbers, n) if length]
        whole = fn is not ring_all_reduce or n == 1
        cuts = (
            [0, numbers]
            if whole
            else [sum(lengths[:k]) for k in range(len(lengths) + 1)]
        )
        assert bounds == cuts
        sent = [trace.bytes_sent(rank) for rank in range(n)]
        assert animation.frames[-1].sent == sent
        described = sum(len(payloads) for payloads in trace.shares.sent.values())
        assert described == len(trace.messages())
        if n > 1:
            assert (
                "Every chunk is now complete on every rank."
                in animation.frames[-1].text
            )


@pytest.mark.parametrize("n, numbers", [(2, 10), (3, 10), (4, 10), (7, 40)])
def test_a_ring_carries_what_theory_says_in_every_step(n, numbers):
    """In step k rank r sends chunk r - k, with the shares of ranks r - k to r.

    Source: Patarasuk and Yuan (2009). From step n - 1 on chunks are complete, and rank
    r sends chunk r + 1 first.
    """
    shares = follow(ring_all_reduce, n, numbers=numbers).trace.shares
    for r in range(n):
        payloads = shares.sent[r, (r + 1) % n]
        assert len(payloads) == 2 * (n - 1)
        for k, payload in enumerate(payloads):
            adds = k < n - 1
            chunk = (r - k) % n if adds else (r + 1 - (k - n + 1)) % n
            whose = {(r - j) % n for j in range(k + 1)} if adds else set(range(n))
            assert payload.chunks == (chunk,)
            assert ranks_in(payload.counts[0]) == sorted(whose)
            held = shares.after((r + 1) % n, k + 1)[chunk]
            assert ranks_in(held) == sorted({*whose, (r + 1) % n})


@pytest.mark.parametrize("n", [4, 7])
def test_a_tree_carries_the_sums_of_whole_subtrees(n):
    shares = follow(tree_all_reduce, n, numbers=3).trace.shares
    for rank in range(1, n):
        parent, distance = rank & (rank - 1), rank & -rank
        (up,), (down,) = shares.sent[rank, parent], shares.sent[parent, rank]
        assert ranks_in(up.counts[0]) == list(range(rank, min(rank + distance, n)))
        assert down.counts == ((1,) * n,)


def test_a_ring_of_copies_and_requests_is_told_like_a_ring_of_views():
    def by_requests(comm, tensor):
        n, rank = comm.world_size, comm.rank
        right, left, chunks = (rank + 1) % n, (rank - 1) % n, split(tensor, n)
        for step in range(2 * (n - 1)):
            lap, k = divmod(step, n - 1)
            outgoing = chunks[(rank + lap - k) % n].clone()
            target = chunks[(rank + lap - k - 1) % n]
            room = torch.empty_like(target)
            receiving, sending = comm.irecv(room, left), comm.isend(outgoing, right)
            receiving.wait()
            sending.wait()
            target.copy_(room if lap else target + room)

    mine, ideal = (
        follow(by_requests, 4, numbers=10),
        follow(ring_all_reduce, 4, numbers=10),
    )
    assert compare(mine, ideal).same, compare(mine, ideal).verdict
    assert mine.trace.shares.sent == ideal.trace.shares.sent


def test_two_runs_of_one_algorithm_agree_and_two_algorithms_do_not():
    runs = [follow(fn, 4, numbers=8) for fn in (*RIGHT, ring_all_reduce)]
    assert compare(runs[2], runs[3]).same
    assert not any(compare(one, runs[2]).same for one in runs[:2])
    assert compare(runs[0], runs[1]).stop == 1


def test_results_and_the_trace_are_those_of_the_function():
    def algorithm(comm, tensor):
        comm.mark(f"rank {comm.rank}")
        ring_all_reduce(comm, tensor)
        return comm.rank, tensor.dtype, tensor.shape

    report = follow(algorithm, 2, numbers=6)
    assert report.results == [(rank, torch.float32, (6,)) for rank in range(2)]
    assert report.trace.bytes_sent(0) == 24
    assert len(report.trace.messages()) == 4


def test_ranks_print_once_though_there_are_two_runs(capfd):
    report = follow(lambda comm, tensor: print("hello"), 2)
    assert capfd.readouterr().out.count("hello") == 2
    assert report.output == ["hello\n"] * 2


def test_seventeen_ranks_are_told_apart():
    trace = follow(naive_all_reduce, 17, numbers=2, fabric=FABRIC).trace
    assert set(Animation(trace).frames[-1].tables.values()) == {(1,) * 17}
    assert ranks_in(trace.shares.sent[0, 16][0].counts[0]) == list(range(17))


def test_a_page_of_eight_ranks_is_small(capsys):
    report = follow(ring_all_reduce, 8)
    size = len(player(report, "Ring all-reduce").html().encode())
    with capsys.disabled():
        print(f"\nthe page of an 8-rank ring: {size / 1e3:.0f} kB")
    assert size < 150_000


# ---- who holds what at the start -------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_broadcast_is_complete_when_everybody_has_the_share_of_the_root(n):
    def from_rank_1(comm, tensor):
        tree_broadcast(comm, tensor, root=1)

    frames = frames_of(from_rank_1, n, holds=lambda rank, chunk: rank == 1)
    root = tuple(int(rank == 1) for rank in range(n))
    first, last = frames[0], frames[-1]
    assert first.tables == {(r, 0): root if r == 1 else (0,) * n for r in range(n)}
    assert "an empty cell holds nothing yet" in first.text
    assert set(last.tables.values()) == {root}
    assert "What arrives fills what was empty." in last.text
    assert "Every chunk is now complete on every rank." in last.text


def test_an_all_gather_is_complete_when_each_chunk_has_the_share_of_its_rank():
    def gathers(comm, tensor):
        pieces = split(tensor, comm.world_size)
        arrived = bruck_all_gather(comm, pieces[comm.rank])
        for piece, new in zip(pieces, arrived, strict=True):
            piece.copy_(new)

    frames = frames_of(gathers, 3, numbers=6, holds=lambda rank, chunk: rank == chunk)
    own = {0: (1, 0, 0), 1: (0, 1, 0), 2: (0, 0, 1)}
    assert frames[0].tables == {
        (r, c): own[c] if r == c else (0, 0, 0) for r in range(3) for c in range(3)
    }
    assert frames[-1].tables == {(r, c): own[c] for r in range(3) for c in range(3)}
    assert "Every chunk is now complete on every rank." in frames[-1].text


def test_a_rank_that_is_left_out_is_not_complete():
    def to_rank_1(comm, tensor):
        if comm.rank < 2:
            (comm.recv if comm.rank else comm.send)(tensor, 1 - comm.rank)

    last = frames_of(to_rank_1, 3, holds=lambda rank, chunk: rank == 0)[-1]
    assert "At the end 2 of 3 tensors are complete: rank 0, rank 1." in last.text


def test_chunks_of_a_start_are_cut_as_those_of_the_algorithms():
    trace = follow(
        lambda comm, tensor: None,
        4,
        numbers=10,
        holds=lambda rank, chunk: rank == chunk,
    ).trace
    lengths = chunk_lengths(10, 4)
    assert trace.shares.bounds == [sum(lengths[:k]) for k in range(5)]


# ---- anything else that a function may do ---------------------------------------


def test_what_a_collective_did_is_told_at_the_collective():
    def ready_made(comm, tensor):
        dist.all_reduce(tensor)
        comm.barrier()
        if comm.rank == 0:
            comm.send(tensor[:5], 1)
        if comm.rank == 1:
            comm.recv(torch.empty(5), 0)

    together, barrier, message = frames_of(ready_made, 2)[1:]
    assert [together.title, barrier.title] == ["All_reduce", "Barrier"]
    assert set(together.tables.values()) == {(1, 1)}
    assert "replaces" not in message.text and not message.changed


def test_objects_between_tensors_leave_each_payload_with_its_message():
    def mixes(comm, tensor):
        if comm.rank == 0:
            comm.send_object({"length": 5}, 1)
            comm.send(tensor[:5], 1)
        else:
            comm.recv_object(0)
            comm.recv(tensor[:5], 0)

    _, about, five = frames_of(mixes, 2, numbers=10)
    assert about.moves[0].chunks == () and "Chunk" not in about.text
    assert five.moves[0].chunks == (0,) and five.moves[0].bytes == 20
    assert "replaces what was there" in five.text


@pytest.mark.parametrize("number", [0.0, 0.5, -3.0, 64.0, float("nan")])
def test_a_message_that_is_no_part_of_the_tensor_has_no_place(number):
    def tells(comm, tensor):
        if comm.rank == 0:
            comm.send(torch.tensor([number]), 1)
        if comm.rank == 1:
            comm.recv(torch.empty(1), 0)

    trace = follow(tells, 3, numbers=10).trace
    assert trace.shares.bounds == [0, 10]
    assert trace.shares.sent == {(0, 1): [((), ())]}


def test_a_function_that_sends_nothing_has_tables_and_nothing_to_play():
    (start,) = frames_of(lambda comm, tensor: tensor.mul_(2), 2)
    assert start.tables == {(0, 0): (1, 0), (1, 0): (0, 1)}


def test_other_messages_in_the_second_run_are_not_made_up():
    def looks(comm, tensor):
        same = bool(tensor[0] == tensor[-1])
        if comm.rank == 0:
            comm.send(tensor, 1 if same else 2)
        if comm.rank == (1 if same else 2):
            comm.recv(tensor, 0)

    trace = follow(looks, 3, numbers=4).trace
    assert [(m.send.rank, m.send.peer) for m in trace.messages()] == [(0, 1)]
    assert player(trace).html()


def test_a_function_that_raises_or_deadlocks_fails_as_in_run():
    def raises(comm, tensor):
        comm.recv(tensor, 1) if comm.rank == 0 else 1 / 0

    def deadlocks(comm, tensor):
        comm.recv(tensor, (comm.rank + 1) % comm.world_size)

    def raises_later(comm, tensor):
        comm.barrier()
        assert tensor[0] == tensor[-1]

    with pytest.raises(RankRaised, match="rank 1 raised ZeroDivisionError"):
        follow(raises, 2)
    with pytest.raises(RankRaised, match="AssertionError"):
        follow(raises_later, 2)
    with pytest.raises(Deadlock) as raised:
        follow(deadlocks, 3)
    assert (
        "rank 1 is left in recv from 2"
        in player(raised.value).animation.frames[-1].text
    )


@pytest.mark.parametrize("world_size", [0, -1, "4", 2.5, None, True])
def test_a_world_size_that_is_none_is_refused_as_in_run(world_size):
    with pytest.raises(InvalidArgument, match="world_size"):
        follow(ring_all_reduce, world_size)


@pytest.mark.parametrize("numbers", [0, -1, 4097, 2.5, "40"])
def test_a_length_that_cannot_be_followed_is_refused(numbers):
    with pytest.raises(InvalidArgument, match="numbers is how long"):
        follow(ring_all_reduce, 2, numbers=numbers)


def test_more_ranks_than_digits_are_refused():
    with pytest.raises(InvalidArgument, match="up to 17 ranks apart, and got 18"):
        follow(ring_all_reduce, 18)
    with pytest.raises(InvalidArgument, match="needs a function"):
        follow(3)
