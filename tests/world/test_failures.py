"""One exception, one story: who first, why, and what the others were doing."""

import os
import pickle
import signal
import sys
import time

import pytest
import torch
import torch.distributed as dist
from outcomes import after_the_outcome
from stores import wait_until

from distlab import (
    CollectiveMismatch,
    Deadlock,
    Hang,
    Kill,
    MessageMismatch,
    RankDied,
    RankRaised,
    WorldTimeout,
    run,
)
from distlab.launch import ranks


def around(comm, steps=6):
    n = comm.world_size
    sent, arrived = torch.ones(100), torch.zeros(100)
    for _ in range(steps):
        comm.sendrecv(sent, arrived, dst=(comm.rank + 1) % n, src=(comm.rank - 1) % n)


def failed(kind, fn, *args, **options):
    with pytest.raises(kind) as raised:
        run(fn, *args, **options)
    return raised.value


def test_an_exception_is_told_with_the_learners_own_frames_only():
    def inner():
        raise KeyError("weights")

    def fails_on_two(comm):
        if comm.rank == 2:
            inner()
        comm.barrier()

    error = failed(RankRaised, fails_on_two, 4)
    story = str(error)
    assert error.rank == 2 and isinstance(error.cause, KeyError)
    assert "rank 2 raised KeyError: 'weights'" in story
    assert 'raise KeyError("weights")' in story and ", in inner" in story
    assert "rank.py" not in story and "site-packages" not in story
    for rank in (0, 1, 3):
        assert f"rank {rank} waited in barrier for rank 2" in story


def test_the_first_of_two_exceptions_is_told(tmp_path):
    def both(comm):
        if comm.rank == 1:
            after_the_outcome((tmp_path / "raised").touch)
            raise TypeError("first")
        if comm.rank == 0:
            wait_until((tmp_path / "raised").exists)
            raise ValueError("later")
        comm.barrier()

    error = failed(RankRaised, both, 3)
    assert error.rank == 1 and isinstance(error.cause, TypeError)


def test_an_exception_that_does_not_pickle_still_arrives():
    class Awkward(Exception):
        def __init__(self, one, two):
            super().__init__(one)
            self.lock = (i for i in range(two))

    def fails(comm):
        raise Awkward("hello", 2)

    error = failed(RankRaised, fails, 1)
    assert "Awkward: hello" in str(error)


@pytest.mark.parametrize(("victim", "step"), [(0, 1), (1, 3), (3, 6)])
def test_a_planned_kill_names_its_victim_and_keeps_its_trace(victim, step):
    error = failed(RankDied, around, 4, faults=[Kill(victim, step)])
    assert error.rank == victim
    assert f"as planned by Kill(rank={victim}, step={step})" in str(error)
    assert error.trace.messages_sent(victim) == step - 1
    assert [e.label for e in error.trace.of(victim, "fault")] == ["kill"]


def test_a_kill_before_the_function_begins():
    error = failed(RankDied, around, 3, faults=[Kill(1, 0)])
    assert error.rank == 1 and not error.trace.messages_sent(1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_rank_killed_from_outside_is_named(number):
    def endless(comm):
        for step in range(10**9):
            around(comm, 1)
            if comm.rank == 2 and step == 200:
                os.kill(os.getpid(), number)

    error = failed(RankDied, endless, 4)
    assert error.rank == 2
    assert f"rank 2 was killed by {signal.Signals(number).name}" in str(error)
    assert error.trace.messages_sent(2) > 100


def test_what_a_crash_of_cpp_said_is_told_without_its_frames():
    def crash(comm):
        frames = "".join(f"frame #{n}: c10::Error + 0x9d\n" for n in range(9))
        print(f"CUDA error: illegal memory access\n\n{frames}", file=sys.stderr)
        os.abort()

    story = str(failed(RankDied, crash, 1))
    assert "It said: CUDA error: illegal memory access" in story
    assert "frame #" not in story


def test_os_exit_is_a_death_with_its_status():
    error = failed(RankDied, lambda c: os._exit(7) if c.rank == 1 else c.barrier(), 3)
    assert error.rank == 1 and "exit status 7" in str(error)


def test_sys_exit_is_an_exception_of_that_rank():
    error = failed(RankRaised, lambda c: sys.exit(3) if c.rank == 1 else c.barrier(), 3)
    assert error.rank == 1 and isinstance(error.cause, SystemExit)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_receive_cycle_is_a_deadlock_with_its_cycle(n):
    def everyone_receives(comm):
        room = torch.zeros(3)
        comm.recv(room, (comm.rank - 1) % comm.world_size)

    error = failed(Deadlock, everyone_receives, n)
    assert sorted(error.cycle) == list(range(n))
    for rank, waits_for in zip(
        error.cycle, (*error.cycle[1:], error.cycle[0]), strict=True
    ):
        assert waits_for == (rank - 1) % n
    assert str(error).count("comm.recv(room, (comm.rank - 1) % comm.world_size)") == n


def test_a_deadlock_of_two_is_found_while_others_still_work():
    def two_of_three(comm):
        if comm.rank == 2:
            while True:
                pass
        comm.recv(torch.zeros(1), 1 - comm.rank)

    error = failed(Deadlock, two_of_three, 3)
    assert sorted(error.cycle) == [0, 1]


def test_ranks_that_send_to_each_other_first_deadlock_at_any_size():
    def send_first(comm):
        comm.send(torch.zeros(1), 1 - comm.rank)
        comm.recv(torch.zeros(1), 1 - comm.rank)

    error = failed(Deadlock, send_first, 2)
    assert "Let one rank receive first, or use sendrecv" in str(error)


def test_plain_torch_receives_deadlock_in_the_same_words():
    def plain(comm):
        dist.recv(torch.zeros(1), src=1 - comm.rank)

    error = failed(Deadlock, plain, 2)
    assert sorted(error.cycle) == [0, 1]


def test_waiting_for_a_rank_that_has_returned_names_it():
    def one_too_many(comm):
        if comm.rank == 0:
            comm.recv(torch.zeros(1), 1)

    error = failed(Deadlock, one_too_many, 2)
    assert error.rank == 1 and error.cycle == ()
    assert "rank 1 has returned" in str(error)


def test_long_computation_is_no_deadlock():
    def slow_partner(comm):
        if comm.rank == 0:
            return comm.recv(torch.zeros(1), 1).item()
        with comm.work("computation", seconds=1.0):
            pass
        comm.send(torch.ones(1), 0)

    assert run(slow_partner, 2).results[0] == 1.0


def test_a_thread_that_will_send_later_is_no_deadlock():
    import threading

    def two_threads(comm):
        if comm.rank == 0:
            return comm.recv(torch.zeros(1), 1).item()
        later = threading.Timer(0.6, lambda: comm.send(torch.ones(1), 0))
        later.start()
        room = torch.zeros(1)
        threading.Thread(target=later.join).start()
        del room
        later.join()

    assert run(two_threads, 2).results[0] == 1.0


@pytest.mark.parametrize("skipper", [0, 3])
def test_a_rank_that_skips_a_barrier_is_named(skipper):
    def skip(comm):
        comm.barrier()
        if comm.rank != skipper:
            comm.barrier()

    error = failed(CollectiveMismatch, skip, 4)
    assert error.rank == skipper
    assert f"rank {skipper} returned and never called barrier" in str(error)


def test_a_rank_that_receives_instead_of_joining_a_barrier_is_named():
    def elsewhere(comm):
        if comm.rank == 1:
            comm.recv(torch.zeros(1), 0)
        comm.barrier()

    error = failed(CollectiveMismatch, elsewhere, 3)
    assert error.rank == 1


def test_a_rank_that_calls_another_collective_is_named():
    def other(comm):
        if comm.rank == 1:
            dist.broadcast(torch.ones(2), src=0)
        else:
            dist.all_reduce(torch.ones(2))

    error = failed(CollectiveMismatch, other, 4)
    assert error.rank == 1
    assert "rank 1 called broadcast(float32[2], 0)" in str(error)


@pytest.mark.parametrize("wrong", [torch.ones(5), torch.ones(2, dtype=torch.float64)])
def test_a_rank_that_passes_another_shape_or_type_is_named(wrong):
    def other(comm):
        dist.all_reduce(wrong if comm.rank == 3 else torch.ones(2))

    error = failed(CollectiveMismatch, other, 4)
    assert error.rank == 3


@pytest.mark.parametrize("sent", [torch.ones(5), torch.ones(3, dtype=torch.float64)])
def test_a_message_that_does_not_fit_its_buffer_names_both_sides(sent):
    def misfit(comm):
        if comm.rank == 0:
            comm.send(sent, 1)
        else:
            comm.recv(torch.zeros(3), 0)

    error = failed(RankRaised, misfit, 2)
    assert isinstance(error.cause, MessageMismatch)
    assert "rank 1 has room for 12 bytes of float32" in str(error)


def test_destroying_the_process_group_under_others_is_blamed_on_who_did_it():
    def destroyer(comm):
        if comm.rank == 1:
            dist.destroy_process_group()
        else:
            dist.all_reduce(torch.ones(3))

    error = failed(CollectiveMismatch, destroyer, 3)
    assert error.rank == 1
    assert "rank 1 had returned, its process group destroyed" in str(error)


def test_using_the_process_group_after_destroying_it_says_what_was_done():
    def destroyer(comm):
        dist.destroy_process_group()
        dist.all_reduce(torch.ones(3))

    error = failed(RankRaised, destroyer, 2)
    assert "had destroyed the process group" in str(error)


def test_a_function_that_destroys_the_process_group_at_its_end_is_fine():
    def tidy(comm):
        comm.barrier()
        dist.destroy_process_group()
        return comm.rank

    assert run(tidy, 3).results == [0, 1, 2]


def test_setting_the_process_group_up_again_says_that_it_is_up():
    error = failed(RankRaised, lambda comm: dist.init_process_group("gloo"), 2)
    assert "up already" in str(error)


def test_time_runs_out_with_the_working_rank_named_and_its_line(monkeypatch):
    def forever(comm):
        if comm.rank == 1:
            time.sleep(60)
        comm.barrier()

    monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    error = failed(WorldTimeout, forever, 3, timeout_s=1.5)
    limit = "within 3 s (timeout_s=1.5, DISTLAB_PATIENCE=2)"
    assert error.rank == 1 and limit in str(error) and "timeout_s=600" in str(error)
    assert "rank 1 was running" in str(error) and "time.sleep(60)" in str(error)


def test_a_late_start_is_told_with_the_limit_that_only_patience_lengthens(monkeypatch):
    monkeypatch.setattr(ranks, "_START_S", 1e-6)
    monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    said = str(failed(WorldTimeout, around, 2))
    assert "did not start within 2e-06 s (DISTLAB_PATIENCE=2)" in said
    assert "DISTLAB_PATIENCE=6 in the environment" in said and "timeout_s" not in said
    monkeypatch.setenv("DISTLAB_PATIENCE", "1e8")
    assert run(around, 2).results


def test_a_hung_rank_is_what_the_others_waited_for():
    error = failed(WorldTimeout, around, 4, faults=[Hang(2, 3)], timeout_s=1)
    assert error.rank == 2 and "rank 2 hung, as planned" in str(error)


def test_a_rank_that_holds_the_interpreter_in_compiled_code_can_be_ended():
    def stuck(comm):
        import re

        re.match(r"(a+)+$", "a" * 40 + "b")

    error = failed(WorldTimeout, stuck, 1, timeout_s=0.7)
    assert "re.match" in str(error)


def test_what_a_rank_started_ends_with_it():
    def leave_something(comm):
        import subprocess

        subprocess.Popen(["sleep", "1000"])
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    failed(RankDied, leave_something, 2)
    run(lambda comm: __import__("subprocess").Popen(["sleep", "1000"]).pid, 2)


def test_a_failure_survives_pickling():
    error = failed(Deadlock, lambda comm: comm.recv(torch.zeros(1), 1 - comm.rank), 2)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (Deadlock, str(error))
    assert (again.rank, again.cycle, len(again.trace)) == (
        0,
        error.cycle,
        len(error.trace),
    )


def test_what_was_printed_before_a_failure_is_kept():
    def speak_and_die(comm):
        print("last words of", comm.rank)
        comm.barrier()
        os._exit(1)

    error = failed(RankDied, speak_and_die, 2, quiet=True)
    assert error.output == ["last words of 0\n", "last words of 1\n"]
