"""Ranks on the nodes of a Ray cluster: as on one machine, and what a node adds.

The oracle is the same call on one machine. A cluster here has its nodes on loopback.
"""

import ipaddress
import itertools
import os
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace

import leaks
import psutil
import pytest
import torch
import torch.distributed as dist
from learner_cells import functions_of
from soaks import repeats
from stores import wait_until
from torch.utils._pytree import tree_map
from training_steps import ALL, trained

from distlab import (
    EngineFailed,
    EngineMissing,
    Hang,
    InvalidArgument,
    Kill,
    Mesh,
    RankDied,
    World,
    WorldClosed,
    WorldFailed,
    run,
    run_elastic,
    show,
)
from distlab.collectives import ring_all_reduce
from distlab.engines import ray
from distlab.engines.ray import facts, processes
from distlab.engines.ray.store import StoreServer
from distlab.launch.network_store import NetworkStore
from distlab.processes import FrameReceived, anonymous_file
from distlab.recorder import SharedTrace

N = 6


@pytest.fixture(scope="module")
def ray_nodes():
    """Return two nodes; ranks 0 to 2 fill the first, 3 to 5 the second."""
    before = leaks.what_there_is()
    with ray.ray_cluster(nodes=2, cpus=3) as found:
        run(in_rings, N, args=(1,), quiet=True, on=found)
        yield found
    assert not leaks.left_since(before)


@pytest.fixture(autouse=True)
def no_rank_left(request):
    """Fail a test after which a process server has processes still."""
    yield
    if "ray_nodes" in request.fixturenames:
        wait_until(lambda: not _ranks())


def _ranks():
    """Return the processes whose server is an actor's on a node."""
    everything = psutil.Process().children(recursive=True)
    hosts = [each for each in everything if "ray::RankHost" in _line(each)]
    servers = [server for host in hosts for server in host.children()]
    return [rank for server in servers for rank in server.children()]


def _line(process):
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def on_both(nodes, fn, *args, **how):
    """Return what a call gives on one machine, and what it gives on the cluster."""
    return [_outcome(fn, args, where, **how) for where in (None, nodes)]


def _outcome(fn, args, where, **how):
    try:
        return run(fn, N, args=args, quiet=True, on=where, **how)
    except WorldFailed as error:
        return error


def in_rings(comm, times):
    for _ in range(times):
        values = torch.full((7,), float(comm.rank))
        ring_all_reduce(comm, values)
    comm.mark("summed")
    return values.tolist()


def in_groups(comm):
    pair = comm.split(comm.rank % 2)
    values = torch.full((3,), float(comm.rank))
    ring_all_reduce(pair, values)
    group = dist.new_group([0, N - 1])  # over the store, after the ranks have met
    if comm.rank in (0, N - 1):
        dist.all_reduce(values, group=group)
    gathered = [None] * N
    dist.all_gather_object(gathered, {"rank": comm.rank})
    mesh = Mesh(comm, dp=N)
    return values.tolist(), gathered, mesh.dp.world_size


def test_results_and_every_event_are_those_of_one_machine(ray_nodes):
    here, there = on_both(ray_nodes, in_rings, 3)
    assert there.results == here.results
    for rank in range(N):
        assert sorted(map(_but_times, there.trace.of(rank))) == sorted(
            map(_but_times, here.trace.of(rank))
        )


def _but_times(event):
    return event.kind, event.peer or 0, event.bytes, event.step, event.label


def test_subgroups_objects_and_meshes_work_as_on_one_machine(ray_nodes):
    here, there = on_both(ray_nodes, in_groups)
    assert there.results == here.results


def test_a_message_is_received_after_it_was_sent_on_one_clock(ray_nodes):
    trace = run(in_rings, N, args=(20,), quiet=True, on=ray_nodes).trace
    assert 0 < trace.clock_error_s < 0.05
    for message in trace.messages():
        assert message.recv.end > message.send.start - 2 * trace.clock_error_s


def test_the_picture_and_the_report_say_how_wrong_clocks_may_be(ray_nodes):
    report = run(in_rings, N, args=(1,), quiet=True, on=ray_nodes)
    for picture in (show.timeline(report), show.player(report)):
        assert "Clocks of different nodes agree within" in picture.alt
    assert "apart" in repr(report)
    assert "ranks 0, 1 and 2 on node 0, ranks 3, 4 and 5 on node 1" in repr(report)


def test_a_rank_knows_its_node_as_under_torchrun(ray_nodes):
    names = "RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"
    found = run(
        lambda comm: [os.environ[name] for name in names], N, quiet=True, on=ray_nodes
    ).results
    assert found[2] == ["2", "2", "0", "6", "3"]
    assert found[4] == ["4", "1", "1", "6", "3"]


def test_a_line_of_output_comes_with_rank_and_node(ray_nodes, capsys):
    report = run(lambda comm: print("here"), N, on=ray_nodes)
    lines = capsys.readouterr().out.splitlines()
    assert "[rank 0 on node 0] here" in lines and "[rank 4 on node 1] here" in lines
    assert report.output == ["here\n"] * N


def fails(comm, how):
    values = torch.ones(4)
    if how == "raises" and comm.rank == 3:
        raise ValueError("no data")
    if how == "deadlock":
        comm.recv(values, (comm.rank + 1) % N)
    if how == "skips" and comm.rank == 4:
        return
    if how == "shape" and comm.rank == 4:
        values = torch.ones(5)
    for _ in range(3 if how in ("kill", "hang") else 1):
        comm.barrier()
        dist.all_reduce(values)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("raises", ()),
        ("deadlock", ()),
        ("skips", ()),
        ("shape", ()),
        ("kill", Kill(3, 2)),
        ("hang", Hang(3, 2)),
    ],
)
def test_a_failure_is_diagnosed_as_on_one_machine(ray_nodes, how, fault):
    limit = {"timeout_s": 1} if how == "hang" else {}
    here, there = on_both(ray_nodes, fails, how, faults=fault, **limit)
    assert type(there) is type(here)
    assert (there.rank, repr(there.cause)) == (here.rank, repr(here.cause))


def test_a_world_keeps_its_ranks_and_what_they_hold(ray_nodes):
    def count(comm):
        torch.calls = getattr(torch, "calls", 0) + 1
        return torch.calls, os.getpid()

    with World(N, on=ray_nodes) as world:
        first, second = world.run(count).results, world.run(count).results
    assert [
        after[0] - before[0] for before, after in zip(first, second, strict=True)
    ] == [1] * N
    assert [pid for _, pid in first] == [pid for _, pid in second]
    with pytest.raises(WorldClosed):
        world.run(count)


def test_two_worlds_share_a_cluster_and_a_third_finds_no_room(ray_nodes, monkeypatch):
    monkeypatch.setattr("distlab.engines.ray.cluster._PLACED_S", 1.0)
    with World(3, on=ray_nodes) as one, World(3, on=ray_nodes) as other:
        assert one.run(in_rings, 1).results == other.run(in_rings, 1).results
        with pytest.raises(EngineFailed, match="others hold its CPUs"):
            run(in_rings, 1, args=(1,), on=ray_nodes)


def test_too_many_ranks_are_refused_with_what_each_node_has(ray_nodes):
    with pytest.raises(InvalidArgument, match=r"room for 6 ranks.*node 0 has 3"):
        run(in_rings, 7, args=(1,), on=ray_nodes)
    with pytest.raises(InvalidArgument, match="room for 0 ranks, with 1 GPU each"):
        run(in_rings, 2, args=(1,), backend="nccl", on=ray_nodes)


def test_all_of_a_local_cluster_listens_on_loopback(ray_nodes):
    with World(2, on=ray_nodes):
        ours = psutil.Process().children(recursive=True)
        found = {
            connection.laddr.ip
            for process in ours
            for connection in process.net_connections()
            if connection.status == psutil.CONN_LISTEN
        }
    outer = {ip for ip in found if not _is_loopback(ip)}
    assert found and not outer


def _is_loopback(ip):
    address = ipaddress.ip_address(ip)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def endless(comm, path, step=1):
    """Sum until a node dies, and make a file once a rank has made so many steps."""
    for done in itertools.count():
        if done == step:
            open(path, "w").close()
        ring_all_reduce(comm, torch.ones(7))


def once(ready, act):
    """Act on a thread once something is so, such as that a rank has made a file."""
    wait_until(ready, 600)  # the run itself has a limit
    act()


def trains(comm, kept, path):
    """Make steps until a world of all ranks has come back, and has made some."""
    done = torch.zeros(1)
    while not done:
        kept["steps"] = kept.get("steps", 0) + 1
        if kept["steps"] == 5:
            open(path, "w").close()
        if comm.world_size < N:
            kept["back"] = 0
        elif "back" in kept:
            kept["back"] += 1
        done = torch.tensor([float(kept.get("back", 0) > 5)])
        dist.all_reduce(done, dist.ReduceOp.MAX)
    return kept["steps"]


def test_a_node_dies_and_is_named_with_its_ranks_then_another_comes(
    ray_nodes, tmp_path
):
    begun, kill = tmp_path / "begun", lambda: ray_nodes.kill_node(1)
    threading.Thread(target=once, args=[begun.exists, kill]).start()
    with pytest.raises(
        RankDied, match="node 1 was lost, and with it ranks 3, 4 and 5"
    ) as (caught):
        run(endless, N, args=(begun,), quiet=True, on=ray_nodes)
    assert caught.value.rank in (3, 4, 5)
    assert "rank 0 waited in" in str(caught.value) or "lost" in str(caught.value)
    with pytest.raises(InvalidArgument, match="room for 3 ranks"):
        run(in_rings, N, args=(1,), on=ray_nodes)
    ray_nodes.add_node(3)
    assert run(in_rings, N, args=(1,), quiet=True, on=ray_nodes).results


def test_an_elastic_run_goes_on_without_a_node_and_takes_the_next_one_in(
    ray_nodes, tmp_path
):
    last = ray_nodes.nodes[-1]
    begun, number = tmp_path / "begun", int(last.split()[-1])

    def replace():
        ray_nodes.kill_node(number)
        ray_nodes.add_node(3)

    threading.Thread(target=once, args=[begun.exists, replace]).start()
    how = {"suspect_after_s": 60}  # a busy machine stops a rank for seconds
    report = run_elastic(trains, N, args=(begun,), on=ray_nodes, **how)
    assert [len(world.processes) for world in report.worlds][:2] == [N, 3]
    assert len(report.worlds[-1].processes) == N
    assert f"{last} was lost, and with it ranks 3, 4 and 5" in report.worlds[1].why
    # gloo can hang on a connection that is cut, so one of three may be replaced, too
    assert sorted(report.results[:3])[1] > max(report.results[3:]) > 5
    assert 0 < report.trace.clock_error_s < 0.05


def test_without_ray_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("distlab.engines.ray.cluster.is_installed", lambda: False)
    with pytest.raises(EngineMissing, match=r'^ray_cluster needs ray: pip install "'):
        ray.ray_cluster()


@pytest.mark.parametrize(
    "wrong", [{"strategy": "near"}, {"nodes": 0}, {"cpus": 1.5}, {"cpus_per_rank": 0}]
)
def test_a_wrong_argument_is_named_before_anything_starts(wrong):
    (name,) = wrong
    with pytest.raises(InvalidArgument, match=name):
        ray.ray_cluster(**wrong)


def test_a_node_with_another_torch_or_no_distlab_is_refused_in_words():
    here = facts.facts_here()
    assert facts.explain_difference(here, here) == ""
    other = facts.explain_difference(here | {"torch": "1.0"}, here)
    assert other.startswith(f"it has torch 1.0, and this process has {here['torch']}")
    lacks = facts.explain_difference(here | {"distlab": None}, here)
    assert lacks.startswith("distlab is not installed there")
    assert "another state" in facts.explain_difference(here | {"distlab": "0"}, here)


def test_a_store_over_the_network_is_as_torchs_own():
    ours, theirs = socket.socketpair()
    server = StoreServer()
    server.add(ours)
    try:
        network, memory = NetworkStore(theirs.detach()), dist.HashStore()
        assert _used(network) == _used(memory)
        network.set_timeout(timedelta(seconds=0.01))
        with pytest.raises(dist.DistStoreError, match="nobody"):
            network.get("nobody")
        with ThreadPoolExecutor(2) as threads:
            network.set_timeout(timedelta(seconds=30))
            waiting = threads.submit(network.get, "later")
            network.set("later", b"now")  # while a thread waits
            assert waiting.result(30) == b"now"
    finally:
        server.close()


def _used(store):
    store.set("a", b"\x00\xff")
    sums = store.add("n", 3), store.add("n", 4)
    store.wait(["a", "n"])
    swapped = store.compare_set("a", "other", "b"), store.compare_set("new", "", "b")
    store.append("long", "x")
    store.append("long", "y")
    there = store.check(["a"]), store.check(["a", "missing"])
    values = store.multi_get(["a", "n", "long"])
    gone = store.delete_key("a"), store.delete_key("a")
    return sums, swapped, there, values, gone, store.has_extended_api()


def test_on_excludes_a_fabric_and_a_relay(ray_nodes):
    with pytest.raises(InvalidArgument, match="on= or relayed="):
        run(in_rings, 2, args=(1,), relayed=True, on=ray_nodes)


def test_the_offset_of_a_clock_is_never_further_off_than_its_error():
    draw, true_offset_s = random.Random(1), -12.5
    node = object.__new__(processes._Node)
    node.offset_s, node._error_s, node._looked = 0.0, float("inf"), 0.0
    for _ in range(200):
        asked = time.monotonic()
        there, back = draw.expovariate(2000), draw.expovariate(500)  # not symmetric
        node.look(asked, asked + there - true_offset_s, asked + there + back)
        assert abs(node.offset_s - true_offset_s) <= node.clock_error_s() + 1e-9
    assert node.clock_error_s() < 0.001


def test_each_rank_of_an_elastic_world_has_the_clock_of_its_processs_node():
    here, there = (SimpleNamespace(offset_s=offset_s) for offset_s in (0.0, -9.0))
    board = SimpleNamespace(offsets_s=[0.0] * 3, clock_error_s=0.1)
    nodes = object.__new__(processes.NodesProcesses)
    nodes._nodes, nodes._board = [], board
    nodes._node_of = {0: here, 1: there, 2: there}
    nodes.compare_clocks([2, 0])
    assert board.offsets_s == [-9.0, 0.0, 0.0]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ALL)
def test_training_on_nodes_gives_what_one_machine_gives(ray_nodes, kind):
    expected = run(trained, N, args=(kind, 3), quiet=True).results
    results = run(trained, N, args=(kind, 3), quiet=True, on=ray_nodes).results
    for ours, theirs in zip(results, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@repeats(10, 50)
def test_a_node_killed_at_any_moment_is_named_and_nothing_hangs(count, tmp_path):
    """One in ten is killed while ranks start; -s prints after each how long it took."""
    draw, took_s, before = random.Random(count), [], leaks.what_there_is()
    with ray.ray_cluster(nodes=2, cpus=3) as nodes:
        for number in range(1, count + 1):
            begun, step = tmp_path / str(number), draw.randrange(-10, 100)
            ready = _ranks if step < 0 else begun.exists

            def kill(number=number):
                took_s.append(-time.monotonic())
                nodes.kill_node(number)

            killer = threading.Thread(target=once, args=[ready, kill])
            killer.start()
            with pytest.raises((RankDied, EngineFailed)) as caught:
                run(endless, N, args=(begun, step), quiet=True, on=nodes)
            took_s[-1] += time.monotonic()
            said = f"kill {number} at step {step}: {took_s[-1]:.2f} s, most "
            said += f"{max(took_s):.2f} s, load {os.getloadavg()[0]:.0f}"
            print(said, flush=True)
            assert f"node {number}" in str(caught.value)
            killer.join()
            wait_until(lambda: not _ranks())
            nodes.add_node(3)
    assert not leaks.left_since(before)


@pytest.mark.nightly
def test_a_node_that_does_not_start_is_started_again(tmp_path, monkeypatch):
    """Nodes 0 and 2 fail: the head, then the one beside the second head."""
    left = tmp_path / "left"
    left.write_text("[0, 2]")
    monkeypatch.setenv("FAILING_NODES", str(left))
    monkeypatch.setattr("distlab.engines.ray.local._ENTRY", "flaky_raylets:main")
    before = leaks.what_there_is()
    with ray.ray_cluster(nodes=2, cpus=1) as nodes:
        wait_until(lambda: len(nodes.nodes) == 2, 60)  # Ray knew the one that failed
        assert run(in_rings, 2, args=(1,), quiet=True, on=nodes).results
        left.write_text("[0, 1, 2]")
        with pytest.raises(EngineFailed, match="timed out during startup"):
            nodes.add_node(1)
        assert run(in_rings, 2, args=(1,), quiet=True, on=nodes).results
    assert not leaks.left_since(before)


@pytest.mark.nightly
def test_ranks_see_the_gpus_that_ray_gave_to_their_node(monkeypatch):
    """Ray counts GPUs that are not there; processes say what they would see."""
    entry = "flaky_raylets:with_gpus"
    monkeypatch.setattr("distlab.engines.ray.local._ENTRY", entry)
    with ray.ray_cluster(nodes=2, cpus=3) as nodes:
        assert nodes.choose_backend("auto", 4) == ("nccl", [])
        assert _visible(nodes, 4) == ["0,1"] * 4
        assert len(set(_visible(nodes, 1)[0])) == 1
        with pytest.raises(InvalidArgument, match="room for 4 ranks, with 1 GPU"):
            nodes.choose_backend("nccl", 6)
        backend, notes = nodes.choose_backend("nccl", 6, share_gpu=True)
        assert backend == "nccl" and notes[0].startswith("6 ranks share 4 GPUs")
        assert _visible(nodes, 6) == ["0,1"] * 6


def _visible(nodes, count):
    """Return the CUDA_VISIBLE_DEVICES of each process of a world on NCCL."""
    block, said = anonymous_file("notes"), {}
    board = SharedTrace(count, block)
    entry = "flaky_raylets:says_its_gpus"
    found = nodes.start_processes(range(count), "nccl", board, entry)
    while len(said) < count:
        frames = [e for e in found.poll(1) if isinstance(e, FrameReceived)]
        said |= {frame.index: frame.payload.decode() for frame in frames}
    found.stop()
    board.close()
    os.close(block)
    return [said[index] for index in range(count)]


def _plain(report):
    """Return results with lists in place of tensors."""
    as_list = {torch.Tensor: torch.Tensor.tolist}
    return tree_map(lambda x: as_list.get(type(x), lambda x: x)(x), report.results)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_functions_of_lessons_10_and_17_run_unchanged_on_three_nodes(tmp_path):
    ring = functions_of("10_ring_all_reduce")
    faults = functions_of("17_fault_tolerance")
    each = [ring[name] for name in ("naive_all_reduce", "my_ring", "adds_once")]
    calls = [(ring["add_up"], (fn, 1000)) for fn in each]
    calls += [(ring["random_sums"], (each[1],)), (ring["shift"], (ring["exchange"],))]
    calls += [(faults[name], ()) for name in ("works", "summed", "checked")]
    with ray.ray_cluster(nodes=3, cpus=2) as nodes:
        for fn, args in calls:
            here, there = on_both(nodes, fn, *args)
            assert _plain(here) == _plain(there), fn.__name__
        killed = {"faults": Kill(2, 74), "timeout_s": 300}
        whole, broken = (
            _outcome(faults["train"], (tmp_path / place, 12), nodes, **how)
            for place, how in (("whole", {}), ("killed", killed))
        )
        assert type(broken) is RankDied and broken.rank == 2
        resumed = _outcome(faults["train"], (tmp_path / "killed", 12), nodes)
        here = _outcome(faults["train"], (tmp_path / "here", 12), None)
        assert resumed.results == whole.results == here.results
        once = sorted([*range(60)] * 4)
        elastic = run_elastic(
            faults["train_elastic"], N, args=(20,), on=nodes, quiet=True
        )
        assert [sorted(seen) for seen, _ in elastic.results] == [once] * N
