"""A world whose messages go through a relay is like any other, and out of reach."""

import json
import os
import pickle
import socket
import struct

import numpy as np
import pytest
import torch

from distlab import Deadlock, Kill, RankDied, RankRaised, collectives, run
from distlab.calls import untrusted_data
from distlab.calls.untrusted_data import read_untrusted
from distlab.errors import CollectiveMismatch, NotSerializable
from distlab.launch import Relaying
from distlab.links import LINKS
from distlab.processes import inside
from distlab.simulated import Nodes, Uniform

FABRICS = {
    "uniform": Uniform(LINKS["InfiniBand HDR"]),
    "nodes": Nodes(4, LINKS["NVLink 4"], LINKS["InfiniBand NDR"], nics=2),
}


def sums(comm):
    tensor = torch.arange(10.0) * comm.rank
    collectives.ring_all_reduce(comm, tensor)
    comm.barrier()
    return tensor.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_messages_bytes_and_rounds_are_those_of_a_process_group(n):
    both = run(sums, n, relayed=True), run(sums, n)
    assert both[0].results == both[1].results
    traces = [report.trace for report in both]
    assert traces[0].rounds() == traces[1].rounds()
    ours, theirs = (
        sorted((e.rank, e.kind, str(e.peer), e.bytes, e.step) for e in trace.events)
        for trace in traces
    )
    assert ours == theirs


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("name", ["ring", "tree", "hierarchical"])
def test_on_a_fabric_all_ends_when_it_does_in_a_simulated_run(fabric, name):
    options = {"ranks_per_node": 4} if name == "hierarchical" else {}
    algorithm, fabric = getattr(collectives, f"{name}_all_reduce"), FABRICS[fabric]

    def reduces(comm):
        algorithm(comm, np.ones(1001, np.float32), **options)

    relayed = run(reduces, 8, relayed=Relaying(fabric=fabric))
    simulated = run(reduces, 8, fabric=fabric)
    assert relayed.elapsed_s == pytest.approx(simulated.elapsed_s, rel=1e-12)
    for rank in range(8):
        ours, theirs = (
            sorted(event.end for event in report.trace.of(rank, "send", "recv"))
            for report in (relayed, simulated)
        )
        assert ours == pytest.approx(theirs, rel=1e-12, abs=0)


def test_arrays_of_any_length_and_strides_arrive():
    def swaps(comm):
        peers = {"dst": 1 - comm.rank, "src": 1 - comm.rank}
        for length in (0, 1, 3):
            room = np.zeros(length, np.float32)
            mine = np.full((length, 2), comm.rank, np.float32)[:, 0]
            comm.sendrecv(mine, room, **peers)
            assert room.tolist() == [1 - comm.rank] * length

    run(swaps, 2, relayed=True)


def failure(kind, fn, n=3, **options):
    with pytest.raises(kind) as raised:
        run(fn, n, relayed=True, **options)
    return raised.value


def test_what_went_wrong_is_named():
    def receives(comm):
        comm.recv(torch.ones(1), (comm.rank + 1) % comm.world_size)

    def misfit(comm):
        if comm.rank == 0:
            comm.send(torch.ones(3), 1)
        if comm.rank == 1:
            comm.recv(torch.ones(2), 0)

    assert set(failure(Deadlock, receives).cycle) == {0, 1, 2}
    skipped = failure(CollectiveMismatch, lambda comm: comm.rank == 1 or comm.barrier())
    assert skipped.rank == 1
    assert "rank 0 sends 12 bytes of float32" in str(failure(RankRaised, misfit))
    assert failure(RankDied, sums, faults=[Kill(2, 3)]).rank == 2


def request(**said):
    return b"?" + json.dumps(said).encode() + b"\n"


SAID = {
    "garbage": b"\xff" * 20,
    "deep JSON": b"?" + b"[" * 100_000,
    "no request": request(do="undo"),
    "an unknown rank": request(do="call", call=1, kind="send", waits=1, out=[9, "x"]),
    "a wait for nothing": request(do="wait", call=77),
    "another event": request(do="point", kind="send", label="x"),
    "an end without words": b'={"outcome": "raised"}\n',
}


@pytest.mark.parametrize("name", SAID)
def test_a_rank_that_sends_garbage_is_blamed(name):
    def liar(comm, said):
        if comm.rank == 1:
            sock = socket.socket(fileno=os.dup(inside().fileno()))
            sock.sendall(struct.pack("<Q", len(said)) + said)
        comm.barrier()

    assert failure(RankRaised, liar, args=(SAID[name],)).rank == 1


@pytest.mark.parametrize("what", [[1.0] * 100, [1] * 100, [[1.0] * 50, (2,) * 50]])
def test_more_than_anybody_could_read_is_refused(what, monkeypatch):
    assert read_untrusted(pickle.dumps(what)) == what
    monkeypatch.setattr(untrusted_data, "_MOST_THINGS", 100)
    with pytest.raises(NotSerializable, match="anybody could read"):
        read_untrusted(pickle.dumps(what))


def test_what_would_run_when_it_is_opened_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotSerializable):
        read_untrusted(b"cos\nsystem\n(Vtouch opened\ntR.")
    assert not os.listdir()
