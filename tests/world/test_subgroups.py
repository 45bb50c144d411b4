"""A subgroup is a Comm, wherever its ranks run; a mesh is a grid of subgroups."""

import re

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from distlab import (
    CollectiveMismatch,
    Deadlock,
    InvalidArgument,
    Kill,
    Mesh,
    RankDied,
    RankRaised,
    World,
    follow,
    run,
)
from distlab.collectives import ring_all_reduce, variants
from distlab.launch import Relaying
from distlab.links import LINKS
from distlab.simulated import Uniform

FABRIC = Uniform(LINKS["InfiniBand NDR"])
PLACES = {
    "processes": {},
    "relayed": {"relayed": True},
    "relayed on a clock": {"relayed": Relaying(fabric=FABRIC)},
    "simulated": {"fabric": FABRIC},
}
everywhere = pytest.mark.parametrize("place", PLACES)


def rows_and_columns(comm):
    """Six ranks, two rows of three; columns the other way round."""
    row = comm.split(comm.rank // 3, name="row")
    column = comm.split(comm.rank % 3, -comm.rank)
    odd = comm.split(1 if comm.rank % 2 else None)
    return row, column, odd


@everywhere
def test_ranks_of_one_color_make_a_group_in_the_order_of_their_keys(place):
    def splits(comm):
        row, column, odd = rows_and_columns(comm)
        inner = row.split(int(row.rank == 0))
        groups = (row, column, odd, inner)
        return [(g.rank, g.world_size, list(g.ranks)) for g in groups if g]

    results = run(splits, 6, **PLACES[place]).results
    assert results[4] == [(1, 3, [3, 4, 5]), (0, 2, [4, 1]), (0, 2, [4, 5])]
    assert results[1][2] == (0, 3, [1, 3, 5])


@everywhere
def test_every_call_of_a_comm_works_in_a_subgroup_and_its_events_know_it(place):
    def calls(comm):
        row, column, _ = rows_and_columns(comm)
        n, rank, x = row.world_size, row.rank, torch.zeros(2)
        mine = torch.tensor([comm.rank, 1.0])
        row.sendrecv(mine, x, dst=(rank + 1) % n, src=(rank - 1) % n)
        requests = [row.isend(mine, (rank + 1) % n), row.irecv(x, (rank - 1) % n)]
        row.wait_any(requests)
        for request in requests:
            request.wait()
        if column.rank == 0:
            column.send_object("hello", 1)
            assert column.recv_any(torch.zeros(2)) == 1
        else:
            assert column.recv_object(0) == "hello"
            column.send(mine, 0)
        row.barrier()
        return x.tolist()

    report = run(calls, 6, **PLACES[place])
    assert [x[0] for x in report.results] == [2, 0, 1, 5, 3, 4]
    trace = report.trace
    rows = trace.among("row")
    assert [rows.bytes_sent(rank) for rank in range(6)] == [16] * 6
    assert {e.group for e in rows.events} == {"0,1,2#1@row", "3,4,5#1@row"}
    assert trace.among("1,4#1").messages_sent(4) == 1
    assert all(m.send and m.recv for m in trace.messages())
    with pytest.raises(InvalidArgument, match="no event of this trace is among 'dp'"):
        trace.among("dp")


@everywhere
@pytest.mark.parametrize("name", ["ring_all_reduce", "recursive_doubling_all_reduce"])
def test_an_all_reduce_in_a_subgroup_is_that_of_a_world_of_its_size(place, name):
    def reduces(comm):
        part = comm.split(comm.rank % 2)
        x = torch.arange(7.0) * (comm.rank + 1)
        variants("all_reduce")[name](part, x)
        return x.tolist()

    def alone(comm):
        x = torch.arange(7.0) * (2 * comm.rank + 1)
        variants("all_reduce")[name](comm, x)
        return x.tolist()

    split, whole = run(reduces, 6, **PLACES[place]), run(alone, 3, fabric=FABRIC)
    assert split.results[::2] == whole.results
    for rank in range(3):
        assert split.trace.bytes_sent(2 * rank) == whole.trace.bytes_sent(rank)


@everywhere
def test_what_is_started_on_two_groups_in_any_order_does_not_meet(place):
    def starts(comm):
        mesh = Mesh(comm, dp=2, tp=2)
        x, y = torch.full((50,), comm.rank + 1.0), torch.full((50,), comm.rank + 1.0)
        both = [(mesh.tp, x), (mesh.dp, y)]
        started = [
            g.start(ring_all_reduce, t) for g, t in both[:: 1 - 2 * (comm.rank % 2)]
        ]
        for each in started:
            each.wait()
        return x[0].item(), y[0].item()

    results = run(starts, 4, **PLACES[place]).results
    assert results == [(3.0, 4.0), (3.0, 6.0), (7.0, 4.0), (7.0, 6.0)]


def crossed(comm):
    mesh = Mesh(comm, dp=2, tp=2)
    order = [mesh.tp, mesh.dp] if comm.rank in (0, 3) else [mesh.dp, mesh.tp]
    for group in order:
        ring_all_reduce(group, torch.zeros(3))


@everywhere
def test_groups_that_wait_crosswise_are_a_deadlock_that_names_both(place):
    with pytest.raises(Deadlock) as caught:
        run(crossed, 4, **PLACES[place])
    story = str(caught.value)
    assert len(caught.value.cycle) == 4
    assert "among ranks 0 and 1 (tp) for rank 1, which waits in sendrecv" in story
    assert "among ranks 1 and 3 (dp) for rank 3" in story
    assert "must call their collectives in the same order" in story


@everywhere
def test_ranks_that_build_different_meshes_are_named(place):
    def differ(comm):
        Mesh(comm, **({"dp": 4, "tp": 2} if comm.rank == 5 else {"dp": 2, "tp": 4}))

    with pytest.raises(CollectiveMismatch) as caught:
        run(differ, 8, **PLACES[place])
    assert caught.value.rank == 5
    assert "rank 5 called Mesh(dp=4, tp=2).dp" in str(caught.value)


@everywhere
def test_a_rank_that_skips_a_groups_call_or_splits_alone_is_named(place):
    def skips(comm):
        half = comm.split(comm.rank // 2, name="half")
        if comm.rank != 3:
            half.barrier()

    with pytest.raises(
        CollectiveMismatch,
        match="rank 3 returned and never called barrier among ranks 2 and 3",
    ):
        run(skips, 4, **PLACES[place])

    def alone(comm):
        comm.split(0) if comm.rank == 2 else comm.barrier()

    with pytest.raises(CollectiveMismatch, match=r"rank 2 called split\(\)"):
        run(alone, 4, **PLACES[place])


def test_a_rank_that_dies_in_a_group_is_told_with_its_rank_in_the_world():
    def dies(comm):
        half = comm.split(comm.rank // 2, name="half")
        for _ in range(100):
            ring_all_reduce(half, torch.zeros(3))

    with pytest.raises(RankDied) as caught:
        run(dies, 4, faults=[Kill(rank=3, step=9)])
    assert caught.value.rank == 3
    assert re.search("rank 2 (waited in sendrecv|lost)", str(caught.value))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda c: Mesh(c, dp=3, tp=2), "dp=3 × tp=2 makes 6 ranks, and there are 4"),
        (lambda c: Mesh(c, dp=0, tp=2), "whole number above 0"),
        (lambda c: Mesh(c), "a mesh has dimensions"),
        (lambda c: Mesh(c, dp=4)["tp"], "has the dimensions dp, and not 'tp'"),
        (lambda c: c.split("a"), "color of a split is a whole number, not 'a'"),
        (lambda c: c.split(0, name="a b"), "'a b' cannot name a group"),
        (
            lambda c: c.split(c.rank // 2).send(torch.zeros(1), 2),
            "dst=2 is no rank here",
        ),
        (lambda c: [c.split(0) for _ in range(64)], "is in 63 groups already"),
    ],
)
def test_bad_meshes_and_splits_are_named(make, said):
    with pytest.raises(RankRaised, match=re.escape(said)):
        run(make, 4)


def test_a_mesh_has_its_last_dimension_innermost_and_groups_along_several():
    def grid(comm):
        mesh = Mesh(comm, pp=2, dp=2, tp=2)
        flat = mesh["pp", "dp"]
        return mesh.tp.ranks, mesh.dp.ranks, mesh.pp.ranks, flat.ranks, flat.rank

    results = run(grid, 8, fabric=FABRIC).results
    assert results[5] == ([4, 5], [5, 7], [1, 5], [1, 3, 5, 7], 2)

    def of_torch(comm):
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        return [
            dist.get_process_group_ranks(mesh.get_group(n)) for n in ("tp", "dp", "pp")
        ]

    assert [list(r[:3]) for r in results] == run(of_torch, 8).results


def test_groups_and_meshes_of_torch_are_followed_with_their_messages():
    def trains(comm):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        x = torch.ones(3)
        dist.all_reduce(x, group=mesh.get_group("tp"))
        group, me = mesh.get_group("dp"), mesh.get_local_rank("dp")
        dist.send(x, group=group, group_dst=1) if me == 0 else dist.recv(
            x, dist.get_global_rank(group, 0), group=group
        )

    trace = run(trains, 4).trace
    assert trace.among("tp").collectives() == ["all_reduce"]
    assert [trace.among("dp").bytes_sent(rank) for rank in range(4)] == [12, 12, 0, 0]

    def waits(comm):
        pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
        if comm.rank < 2:
            dist.recv(torch.zeros(3), comm.rank + 1, group=pairs[comm.rank])

    with pytest.raises(Deadlock, match="recv from rank 2 among ranks 1 and 2"):
        run(waits, 3)


def test_a_world_that_stays_makes_its_groups_once():
    def sums(comm):
        mesh, x = Mesh(comm, dp=2, tp=2), torch.ones(1)
        ring_all_reduce(mesh.dp, x)
        return x.item()

    with World(4) as world:
        for _ in range(40):
            report = world.run(sums)
            assert report.results == [2.0] * 4 and not report.notes


@pytest.mark.parametrize("place", ["processes", "simulated"])
def test_a_picture_follows_whose_share_is_where_through_the_groups_of_a_mesh(place):
    def sums(comm, x):
        mesh = Mesh(comm, dp=2, tp=2)
        ring_all_reduce(mesh.tp, x)
        ring_all_reduce(mesh.dp, x)

    shares = follow(sums, 4, **PLACES[place]).trace.shares
    ends = [tables[-1][1] for tables in shares.held]
    assert all(counts == (1, 1, 1, 1) for table in ends for counts in table)
    assert {len(payloads) for payloads in shares.sent.values()} == {2}
