"""`run`: real processes, their results, their output and their trace."""

import os
import random
import sys
import threading
import time

import numpy as np
import pytest
import torch
import torch.distributed as dist

from distlab import Kill, NestedWorld, RankRaised, Slow, run

SIZES = [1, 2, 3, 4, 7]


def pass_right(comm, tensor, steps=1):
    """Pass a tensor around the ring; return what arrived last."""
    n = comm.world_size
    arrived = torch.zeros_like(tensor)
    for _ in range(steps if n > 1 else 0):
        comm.sendrecv(tensor, arrived, dst=(comm.rank + 1) % n, src=(comm.rank - 1) % n)
        tensor = arrived.clone()
    return tensor


@pytest.mark.parametrize("n", SIZES)
def test_every_rank_is_a_process_of_its_own_with_its_own_rank(n):
    report = run(lambda comm: (comm.rank, comm.world_size, os.getpid()), n)
    assert [(r, size) for r, size, _ in report.results] == [(r, n) for r in range(n)]
    assert len({pid for *_, pid in report.results} | {os.getpid()}) == n + 1


@pytest.mark.parametrize("n", SIZES)
def test_messages_go_to_the_rank_they_are_sent_to(n):
    report = run(lambda comm: pass_right(comm, torch.tensor([comm.rank])).item(), n)
    assert report.results == [(rank - 1) % n for rank in range(n)]


def test_torch_and_numpy_of_any_type_and_layout_arrive_whole():
    def exchange(comm):
        things = [
            torch.arange(6, dtype=torch.bfloat16),
            torch.arange(6).reshape(2, 3).T,
            torch.tensor(True),
            torch.empty(0),
            torch.ones(3, requires_grad=True),
            np.arange(6, dtype=np.int16)[::-1],
            np.array(2.5),
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        ]
        if comm.rank == 0:
            for thing in things:
                comm.send(thing, 1)
            return None
        same = []
        for thing in things:
            room = (
                thing.copy()
                if isinstance(thing, np.ndarray)
                else thing.detach().clone()
            )
            room[...] = 0
            assert comm.recv(room, 0) is room
            same.append(bool((room == thing).all()))
        return same

    assert run(exchange, 2).results[1] == [True] * 8


def test_objects_arrive_and_count_as_one_message_of_their_pickled_size():
    def exchange(comm):
        if comm.rank == 0:
            return comm.send_object({"a": [1, "x"]}, 1)
        return comm.recv_object(0)

    report = run(exchange, 2)
    assert report.results[1] == {"a": [1, "x"]}
    assert report.trace.messages_sent(0) == 1
    assert report.trace.bytes_sent(0) == report.trace.bytes_received(1) > 10


def test_requests_are_under_way_together_and_filled_after_wait():
    def exchange(comm):
        other = 1 - comm.rank
        room = torch.zeros(4)
        receiving = comm.irecv(room, other)
        sending = comm.isend(torch.full((4,), float(comm.rank)), other)
        assert receiving.wait() is room
        sending.wait()
        sending.wait()
        return room.tolist()

    report = run(exchange, 2)
    assert report.results == [[1.0] * 4, [0.0] * 4]
    assert report.trace.rounds() == 1


def test_trace_counts_bytes_messages_and_rounds_exactly():
    report = run(lambda comm: pass_right(comm, torch.zeros(25), 3).sum().item(), 4)
    trace = report.trace
    assert [trace.bytes_sent(rank) for rank in range(4)] == [300] * 4
    assert [trace.messages_sent(rank) for rank in range(4)] == [3] * 4
    assert trace.rounds() == 3
    assert {event.step for event in trace.events} == {1, 2, 3}
    assert all(0 <= event.start <= event.end for event in trace.events)


def test_a_send_and_a_receive_at_once_are_counted_each_with_its_own_size():
    def unequal(comm):
        right, left = (comm.rank + 1) % 4, (comm.rank - 1) % 4
        sent, room = torch.zeros(comm.rank + 1), torch.zeros(left + 1)
        comm.sendrecv(sent, room, dst=right, src=left)

    trace = run(unequal, 4).trace
    assert [trace.bytes_sent(rank) for rank in range(4)] == [4, 8, 12, 16]
    assert [trace.bytes_received(rank) for rank in range(4)] == [16, 4, 8, 12]


def test_receiving_into_what_is_being_sent_is_refused():
    def race(comm):
        tensor = torch.zeros(8)
        comm.sendrecv(tensor[:5], tensor[4:], dst=1 - comm.rank, src=1 - comm.rank)

    with pytest.raises(RankRaised, match="share memory"):
        run(race, 2)


def test_more_events_than_the_ring_holds_are_all_kept():
    def chatter(comm):
        for number in range(40_000):
            comm.mark("even" if number % 2 else "odd")
            comm.mark(f"step {number % 100}")

    trace = run(chatter, 2).trace
    assert len(trace.events) == 160_000
    assert trace.of(1, "mark")[-1].label == "step 99"


def test_plain_torch_distributed_runs_and_is_seen():
    def plain(comm):
        tensor = torch.ones(3)
        dist.all_reduce(tensor)
        if comm.rank == 0:
            dist.send(tensor, dst=1)
        if comm.rank == 1:
            dist.recv(tensor, src=0)
        requests = dist.batch_isend_irecv(
            [
                dist.P2POp(
                    dist.isend, torch.ones(2), (comm.rank + 1) % comm.world_size
                ),
                dist.P2POp(
                    dist.irecv, torch.ones(2), (comm.rank - 1) % comm.world_size
                ),
            ]
        )
        for request in requests:
            request.wait()
        gathered = [None] * comm.world_size
        dist.all_gather_object(gathered, comm.rank)
        return tensor.sum().item(), gathered

    report = run(plain, 3)
    assert report.results == [(9.0, [0, 1, 2])] * 3
    assert report.trace.collectives() == ["all_gather_object", "all_reduce"]
    assert [report.trace.bytes_sent(rank) for rank in range(3)] == [20, 8, 8]


def test_torchrun_names_and_the_notebooks_surroundings_are_set(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTLAB_TEST_VARIABLE", "seen")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beside_the_notebook.py").write_text("ANSWER = 42")

    def look(comm):
        import beside_the_notebook

        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "DISTLAB_TEST_VARIABLE")
        return [os.environ[n] for n in names], os.getcwd(), beside_the_notebook.ANSWER

    expected = [(([str(r), "2", str(r), "seen"]), str(tmp_path), 42) for r in range(2)]
    assert run(look, 2).results == expected


def test_ranks_draw_different_random_numbers():
    results = run(lambda comm: (random.random(), np.random.rand()), 4).results
    assert len(set(results)) == 4


def test_output_is_tagged_whole_and_never_on_stderr(capfd):
    def speak(comm):
        print("héllo", comm.rank)
        print("to stderr", file=sys.stderr)
        os.write(1, b"raw\n")
        print("no end", end="")

    report = run(speak, 3)
    shown = capfd.readouterr()
    assert report.output == [f"héllo {r}\nto stderr\nraw\nno end\n" for r in range(3)]
    assert shown.err == ""
    assert sorted(shown.out.splitlines()) == sorted(
        f"[rank {r}] {line}"
        for r in range(3)
        for line in (f"héllo {r}", "to stderr", "raw", "no end")
    )


def test_quiet_shows_nothing_and_keeps_everything(capfd):
    report = run(lambda comm: print("x" * 50), 2, quiet=True)
    assert capfd.readouterr() == ("", "")
    assert report.output == ["x" * 50 + "\n"] * 2


def test_a_million_lines_leave_the_cell_readable(capfd):
    def shout(comm):
        for number in range(500_000):
            print(number)

    report = run(shout, 2)
    assert [text.count("\n") for text in report.output] == [500_000] * 2
    shown = capfd.readouterr().out.splitlines()
    assert len(shown) == 501
    assert shown[-1] == "(and 999,500 more lines, kept in the report's output)"


def test_a_result_of_200_megabytes_arrives():
    def big(comm):
        return np.full(25 * 2**20, comm.rank, dtype=np.float64) if comm.rank else None

    results = run(big, 2).results
    assert results[1].nbytes == 200 * 2**20
    assert results[1].min() == results[1].max() == 1


def test_a_result_that_cannot_travel_is_named():
    with pytest.raises(RankRaised, match=r"result\['x'\]\[1\] is a generator"):
        run(lambda comm: {"x": [0, (i for i in range(3))]}, 2)


def test_a_world_inside_a_rank_is_refused():
    with pytest.raises(RankRaised, match="inside rank") as raised:
        run(lambda comm: run(lambda inner: 0, 2), 2)
    assert isinstance(raised.value.cause, NestedWorld)


def test_run_works_from_threads_side_by_side():
    results = {}

    def work(name):
        results[name] = run(lambda comm: (name, comm.rank), 2, quiet=True).results

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: [(name, 0), (name, 1)] for name in "abc"}


def test_a_message_that_nobody_waited_for_is_mentioned_in_the_report():
    def careless(comm):
        if comm.rank == 0:
            comm.isend(torch.ones(1), 1)

    assert run(careless, 2).notes == [
        "Rank 0 began 1 messages to rank 1, which asked for 0 so far."
    ]


def test_a_slow_rank_has_less_of_the_processor_than_another(tmp_path):
    def used(comm):
        comm.barrier()
        began = time.process_time()
        while not (done := tmp_path / "done").exists():
            if comm.rank == 1 and time.process_time() - began > 0.3:
                done.touch()
        return time.process_time() - began

    slow, other = run(used, 2, faults=[Slow(0, 8)]).results
    assert slow < other / 2


def test_the_summary_of_a_report_names_every_rank_and_its_bytes():
    report = run(lambda comm: pass_right(comm, torch.zeros(250)).sum().item(), 3)
    text, page = repr(report), report._repr_html_()
    assert text.splitlines()[0].startswith("3 ranks on gloo")
    for shown in (text, page.partition("<details")[0]):
        assert shown.count("1 kB") == 3
    assert "<table" in page


def test_results_are_shown_as_text_in_the_summary_never_as_html():
    page = run(lambda comm: "<script>alert(1)</script>", 1)._repr_html_()
    assert "<script>" not in page


def test_faults_that_never_fire_change_nothing():
    assert run(lambda comm: comm.rank, 2, faults=[Kill(1, 99)]).results == [0, 1]
