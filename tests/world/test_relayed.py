"""A world whose messages go through a relay is like any other, and out of reach."""

import json
import os
import socket
import struct
import time

import pytest
import torch
import torch.distributed as dist

from distlab import Deadlock, Kill, RankDied, RankRaised, run
from distlab.calls.travel import Packed, pack, unpack_plain
from distlab.cells import learn
from distlab.collectives import ring_all_reduce, tree_broadcast
from distlab.errors import CannotTravel, CollectiveMismatch, WorldFailed
from distlab.grading.shapes import is_like
from distlab.launch import Relaying
from distlab.launch.clocks import VirtualClock
from distlab.processes import inside


def sums(comm):
    tensor = torch.arange(10.0) * comm.rank
    ring_all_reduce(comm, tensor)
    comm.barrier()
    return tensor.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_messages_bytes_and_rounds_are_those_of_a_process_group(n):
    relayed, direct = run(sums, n, relayed=True), run(sums, n)
    assert relayed.results == direct.results
    assert relayed.trace.rounds() == direct.trace.rounds()
    for rank in range(n):
        ours, theirs = (
            [(e.kind, e.peer, e.bytes, e.step) for e in report.trace.of(rank)]
            for report in (relayed, direct)
        )
        assert sorted(ours, key=str) == sorted(theirs, key=str)


@pytest.mark.parametrize("relayed", [False, True, Relaying(virtual=True)], ids=str)
def test_a_thread_may_send_while_another_receives(relayed):
    def beside(comm):
        import threading

        n, arrived = comm.world_size, torch.empty(3)
        for step in range(4):
            mine = torch.full((3,), float(10 * step + comm.rank))
            ahead, behind = (comm.rank + 1) % n, (comm.rank - 1) % n
            sender = threading.Thread(target=comm.send, args=(mine, ahead))
            sender.start()
            comm.recv(arrived, behind)
            sender.join()
        return arrived[0].item()

    assert run(beside, 3, relayed=relayed, timeout_s=30).results == [32.0, 30.0, 31.0]


def test_a_barrier_of_one_thread_leaves_a_message_of_another_alone():
    def beside(comm):
        import threading

        arrived = torch.zeros(1)
        if comm.rank == 0:
            waiting = threading.Thread(target=comm.recv, args=(arrived, 1))
            waiting.start()
            comm.barrier()
            comm.send(torch.ones(1), 1)
            waiting.join()
        else:
            comm.barrier()
            comm.recv(arrived, 0)
            comm.send(arrived + 1, 0)
        return arrived.item()

    assert run(beside, 2, relayed=True, timeout_s=30).results == [2.0, 1.0]


def test_every_way_to_send_arrives():
    def all_ways(comm):
        n, rank = comm.world_size, comm.rank
        ahead, behind = (rank + 1) % n, (rank - 1) % n
        room = [torch.zeros(3, dtype=torch.int64) for _ in range(3)]
        mine = torch.full((3,), rank)
        comm.sendrecv(mine, room[0], dst=ahead, src=behind)
        requests = [comm.irecv(room[1], behind), comm.isend(mine, ahead)]
        arrived = [request.wait() for request in requests]
        assert arrived[0] is room[1] and requests[0].is_completed()
        if rank:
            comm.recv(room[2], behind)
        if rank < n - 1:
            comm.send(mine, ahead)
        if rank == 0:
            comm.send_object({"a": [rank]}, 1)
        return [t.tolist() for t in room], comm.recv_object(0) if rank == 1 else None

    results = run(all_ways, 3, relayed=True).results
    assert results[1] == ([[0] * 3] * 3, {"a": [0]})
    assert results[0] == ([[2] * 3, [2] * 3, [0] * 3], None)


def test_what_is_started_runs_beside_the_rank():
    def started(comm):
        tensor = torch.ones(4)
        request = comm.start(ring_all_reduce, tensor)
        with comm.work("meanwhile"):
            time.sleep(0.05)
        request.wait()
        return tensor.tolist()

    report = run(started, 3, relayed=True)
    assert report.results == [[3.0] * 4] * 3
    (work,) = report.trace.of(0, "work")
    assert work.label == "meanwhile" and work.end - work.start >= 0.04
    assert any(send.start < work.end for send in report.trace.of(0, "send"))


def test_each_rank_has_its_own_arguments_only():
    def mine(comm, common, own):
        return common, own

    own = [("zero",), ("one",)]
    for relayed in (True, False):
        report = run(mine, 2, args=("all",), own_args=own, relayed=relayed)
        assert report.results == [("all", "zero"), ("all", "one")]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_rank_is_weighed_when_it_is_ready_and_whenever_it_asks():
    def grows(comm):
        comm.ask(None)
        kept = []
        for _ in range(4 * comm.rank):
            kept.append(bytearray(b"b" * 2**22))
            comm.ask(None)
        kept.clear()
        comm.ask(None)

    seen = [[], []]
    how = {"answers": lambda *asked: None, "weighed": lambda r, b: seen[r].append(b)}
    run(grows, 2, relayed=Relaying(**how))
    assert [len(each) for each in seen] == [3, 7]
    grown = [[(b - each[0]) / 2**20 for b in each] for each in seen]
    assert grown[0] == pytest.approx([0, 0, 0], abs=2)
    assert grown[1] == pytest.approx([0, 0, 4, 8, 12, 16, 0], abs=2)


def test_the_caller_answers_what_a_rank_asks():
    def asks(comm):
        try:
            comm.ask("no")
        except ValueError as error:
            return comm.ask([comm.rank, 1]), str(error)

    def answers(rank, question, step):
        if question == "no":
            raise ValueError("never")
        return {"rank": rank, "sum": sum(question), "step": step}

    results = run(asks, 2, relayed=Relaying(answers)).results
    assert results == [
        ({"rank": r, "sum": r + 1, "step": 0}, "never") for r in range(2)
    ]


@pytest.mark.parametrize("n", [2, 5, 16, 40])
def test_on_a_virtual_clock_a_tree_takes_as_many_seconds_as_it_has_rounds(n):
    def tree(comm):
        tree_broadcast(comm, torch.ones(1))

    report = run(tree, n, relayed=Relaying(virtual=True))
    assert report.elapsed_s == report.trace.rounds() == (n - 1).bit_length()


def test_on_a_virtual_clock_messages_begun_together_leave_one_after_another():
    def star(comm):
        if comm.rank:
            comm.recv(torch.ones(1), 0)
        else:
            requests = [comm.isend(torch.ones(1), r) for r in range(1, 9)]
            for request in requests:
                request.wait()

    report = run(star, 9, relayed=Relaying(virtual=True))
    assert (report.elapsed_s, report.trace.rounds()) == (8, 1)


def test_seconds_of_a_virtual_clock_are_free_until_they_are_taken_at_both_ends():
    clock = VirtualClock(3)
    assert clock.arrival(0, 1, 5) == 6
    assert clock.arrival(0, 2, 0) == 1
    assert clock.arrival(2, 1, 5) == 7
    assert [clock.arrival(0, 1, 0) for _ in range(6)] == [2, 3, 4, 5, 8, 9]


# ---- failures are told as ever --------------------------------------------------


def told(kind, fn, n=3, **options):
    with pytest.raises(kind) as raised:
        run(fn, n, relayed=True, **options)
    return raised.value


def test_a_deadlock_is_found_with_its_cycle():
    def receives(comm):
        comm.recv(torch.ones(1), (comm.rank + 1) % comm.world_size)

    assert set(told(Deadlock, receives).cycle) == {0, 1, 2}


def test_a_skipped_barrier_is_blamed_on_who_skipped_it():
    error = told(CollectiveMismatch, lambda comm: comm.rank == 1 or comm.barrier())
    assert error.rank == 1


def test_what_does_not_fit_names_both_sides():
    def misfit(comm):
        if comm.rank == 0:
            comm.send(torch.ones(3), 1)
        if comm.rank == 1:
            comm.recv(torch.ones(2), 0)

    error = told(RankRaised, misfit)
    assert type(error.cause).__name__ == "MessageMismatch"
    assert "rank 0 sends 12 bytes of float32" in str(error)


def test_a_killed_rank_is_named():
    def around(comm):
        for _ in range(5):
            sums(comm)

    assert told(RankDied, around, faults=[Kill(2, 3)]).rank == 2
    assert "exit status 0" in str(told(RankDied, lambda comm: os._exit(0)))


def test_torchs_collectives_are_refused_and_noted_and_its_messages_are_carried():
    error = told(RankRaised, lambda comm: dist.all_reduce(torch.ones(1)))
    assert "has no process group here" in str(error)
    assert error.trace.collectives() == ["all_reduce"]

    def point_to_point(comm):
        tensor = torch.full((1,), float(dist.get_rank()))
        if dist.get_rank() == 0:
            dist.send(tensor, 1)
        else:
            dist.recv(tensor, 0)
        return tensor.item()

    assert run(point_to_point, 2, relayed=True).results == [0.0, 0.0]


# ---- ranks that lie -------------------------------------------------------------


def channel():
    return socket.socket(fileno=os.dup(inside().fileno()))


def frame(payload):
    return struct.pack("<Q", len(payload)) + payload


def request(**said):
    return b"?" + json.dumps(said).encode() + b"\n"


SAID = {
    "garbage": b"\xff" * 20,
    "nothing": b"",
    "no JSON": b"?{",
    "deep JSON": b"?" + b"[" * 100_000,
    "no request": request(do="undo"),
    "an unknown rank": request(do="call", call=1, kind="send", waits=1, out=[9, "x"]),
    "itself": request(do="call", call=1, kind="send", waits=1, out=[1, "float32"]),
    "a negative size": request(
        do="call", call=1, kind="recv", waits=True, into=[0, "float32", -5]
    ),
    "a huge size": request(
        do="call", call=1, kind="recv", waits=True, into=[0, "float32", 2**70]
    ),
    "a wait for nothing": request(do="wait", call=77),
    "another kind": request(do="call", call=1, kind="mark", waits=1, out=[0, "x"]),
    "a label that is none": request(do="point", kind="mark", label=["x"]),
    "another event": request(do="point", kind="send", label="x"),
    "a number for an end": b"=17\nabc",
    "an end without words": b'={"outcome": "raised"}\n',
}


@pytest.mark.parametrize("name", SAID)
def test_a_rank_that_talks_nonsense_fails_itself(name):
    def liar(comm, said):
        if comm.rank == 1:
            channel().sendall(said)
        comm.barrier()

    error = told(RankRaised, liar, args=(frame(SAID[name]),))
    assert error.rank == 1, error


def test_an_announced_frame_without_end_costs_nothing_and_ends_the_world():
    def liar(comm):
        if comm.rank == 1:
            channel().sendall(struct.pack("<Q", 2**50))
        comm.barrier()

    assert "1,125,899,906,842,624 bytes" in str(told(RankRaised, liar))


def test_a_flood_of_marks_ends():
    def liar(comm):
        sock, many = channel(), frame(request(do="point", kind="mark", label="x")) * 999
        while comm.rank == 1:
            sock.sendall(many)
        comm.barrier()

    began = time.monotonic()
    assert told(RankRaised, liar).rank == 1
    assert time.monotonic() - began < 30


def test_a_rank_that_never_reads_hangs_nobody_else():
    def liar(comm):
        sock = channel()
        if comm.rank == 1:
            while True:
                sock.sendall(frame(request(do="done", call=1)) * 100)
        time.sleep(0.5)

    began = time.monotonic()
    with pytest.raises(WorldFailed):
        run(liar, 2, relayed=True, timeout_s=5)
    assert time.monotonic() - began < 30


def test_what_a_rank_says_after_its_end_counts_no_more():
    def liar(comm):
        if comm.rank == 1:
            end = b'={"outcome": "returned"}\n' + pack("forged")
            sock = channel()
            sock.sendall(frame(end))
            sock.sendall(frame(request(do="point", kind="mark", label="after")))
            time.sleep(0.2)
        return "honest"

    report = run(liar, 2, relayed=True)
    assert report.results == ["honest", "forged"]
    assert not report.trace.of(1, "mark")


# ---- what comes back ------------------------------------------------------------


class Mine:
    """A class that only the sender has."""


class Int(int):
    """A number that could have methods."""


def bomb():
    bomb = [1] * 10
    for _ in range(30):
        bomb = [bomb] * 10
    return bomb


def cycle():
    around = []
    around.append(around)
    return around


class Runs:
    """Something that would run when it is opened."""

    def __reduce__(self):
        return os.system, ("touch opened",)


HOSTILE = [Mine(), Int(3), [Int(3)], {"a": Mine}, os.system, Runs(), bomb(), cycle()]
HOSTILE += [torch.ones(1), torch.ones(1).numpy(), 10**5000, print, ValueError(Runs())]


@pytest.mark.parametrize("thing", HOSTILE, ids=lambda thing: type(thing).__name__)
def test_what_is_not_plain_is_named_and_never_made(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CannotTravel):
        unpack_plain(pack(thing))
    assert not os.listdir()


JUNK = [b"", b"\x80\x05.", b"cos\nsystem\n.", b"\x95" * 30, b"cbuiltins\nset\n."]
JUNK += [b"cbuiltins\nbytearray\n(I99999999999\ntR."]
JUNK += [b"cdistlab.errors\nDeadlock\n(N}Vstory\nI1\nstb."]


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_pickle_is_no_data_and_changes_nothing(junk):
    with pytest.raises(CannotTravel):
        unpack_plain(junk)
    assert not hasattr(Deadlock, "story")


def test_plain_data_comes_back_as_it_was():
    plain = {"a": [1, 2.5, None, True, "ü", b"x"], (1, 2): {3, 4}, "c": 1j}
    assert unpack_plain(pack(plain)) == plain
    error = unpack_plain(pack(ValueError("why", 3)))
    assert type(error) is ValueError and error.args == ("why", 3)


def test_a_failure_told_by_others_shows_lines_of_their_cells_only(
    tmp_path, monkeypatch
):
    secret, cell = str(tmp_path / "secret.py"), "/tmp/cell.py"
    (tmp_path / "secret.py").write_text("the answer is 42")

    def liar(comm):
        frames = [(secret, 1, "f"), (cell, 1, "g")]
        said = {"outcome": "raised", "type": "KeyError", "message": "x", "because": ""}
        line = json.dumps(said | {"frames": frames}).encode()
        channel().sendall(frame(b"=" + line + b"\n"))
        time.sleep(5)

    monkeypatch.setattr("distlab.cells._told", {})
    assert "the answer is 42" in str(told(RankRaised, liar, 1))
    learn({cell: ("Cell In[3]", ["mine = 1"])})
    story = str(told(RankRaised, liar, 1))
    assert "secret.py, line 1" in story and "42" not in story
    assert "Cell In[3], line 1" in story and "mine = 1" in story


def test_a_rank_that_returns_what_is_not_plain_is_told_so():
    assert "rank 0 returned a Tensor, which is not plain" in str(
        told(RankRaised, lambda comm: torch.ones(1), 1)
    )


def test_an_exception_of_the_ranks_own_making_is_told_by_its_name():
    def fails(comm):
        class Tricky(Exception):
            def __str__(self):
                return "x" * 100_000 + "\ud800"

        raise Tricky

    error = told(RankRaised, fails, 1)
    assert type(error.cause) is RuntimeError and len(str(error)) < 20_000
    str(error).encode()


def test_a_packed_function_is_opened_in_the_ranks_only(tmp_path):
    note = tmp_path / "opened"

    class Noting:
        def __reduce__(self):
            write = f"open({str(note)!r}, 'a').write(str(__import__('os').getpid()))"
            return eval, (f"{write} and len",)

    packed = Packed(pack(Noting()), "f")
    report = run(lambda comm, f: f("abc"), 1, args=(packed,), relayed=True)
    assert report.results == [3]
    assert note.read_text() != str(os.getpid())


@pytest.mark.parametrize(
    "value, shape, fits",
    [
        ({"a": [1.0, 2]}, {"a": [float]}, True),
        ({"a": [1.0, 2]}, {"a": [float, 3]}, False),
        ({"a": 1, "b": 2}, {"a": int}, False),
        (True, int, False),
        (None, (int, None), True),
        ("1", float, False),
        ([], {}, False),
    ],
)
def test_a_shape_fits_what_looks_like_it(value, shape, fits):
    assert is_like(value, shape) == fits
