"""What the checks of turns say to answers that the exercise's variants do not have."""

import pytest
import torch
import torch.distributed as dist

from distlab import collectives
from distlab.grading import PreparesAndSpeaks, SpeaksInOrder, SpeaksInRounds, check


def tell(comm, dst):
    comm.send_object("your turn", dst)


def in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        tell(comm, comm.rank + 1)


def without_messages(comm, speak):
    speak()


def rank_0_waits_too(comm, speak):
    comm.recv_object(comm.rank - 1)
    speak()


def names_itself(comm, speak):
    comm.recv_object(comm.rank)


def rank_0_keeps_the_turn(comm, speak):
    if comm.rank == 0:
        speak()
    else:
        in_order(comm, speak)


def rank_1_is_not_heard(comm, speak):
    if comm.rank == 1:
        speak()
        tell(comm, 0)
    in_order(comm, speak)


def last_never_speaks(comm, speak):
    in_order(comm, speak if comm.rank < comm.world_size - 1 else lambda: None)


def forgets_the_brackets(comm, speak):
    in_order(comm, lambda: speak)


def receives_afterwards(comm, speak):
    speak()
    in_order(comm, lambda: None)


def from_the_top(comm, speak):
    if comm.rank < comm.world_size - 1:
        comm.recv_object(comm.rank + 1)
    speak()
    if comm.rank > 0:
        tell(comm, comm.rank - 1)


def waits_in_its_own_send(comm, speak):
    if comm.rank > 0:
        tell(comm, comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.recv_object(comm.rank + 1)


def two_kinds(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send(torch.ones(1), comm.rank + 1)


def barrier_of_the_library(comm, speak):
    for rank in range(comm.world_size):
        if rank == comm.rank:
            speak()
        collectives.dissemination_barrier(comm)


def barrier_of_rank_0(comm, speak):
    speak()
    if comm.rank == 0:
        comm.barrier()


def not_begun(comm, speak):
    raise NotImplementedError("write this step")


turns_taken = []


def waits_for_a_shared_list(comm, speak):
    while len(turns_taken) < comm.rank:
        pass
    speak()
    turns_taken.append(comm.rank)


@pytest.mark.parametrize(
    "answer, hint",
    [
        (without_messages, "Nobody sent a message, and a rank sees nothing else"),
        (rank_0_waits_too, "Nobody comes before rank 0"),
        (names_itself, "A rank names itself"),
        (rank_0_keeps_the_turn, "Does every rank that has spoken tell the next one?"),
        (rank_1_is_not_heard, "A send ends only when the other side asks for it"),
        (last_never_speaks, "Follow rank 3 through your function: which branch"),
        (forgets_the_brackets, "A call has brackets"),
        (receives_afterwards, "Receive first, then speak"),
        (from_the_top, "heard from rank 2, which comes after it"),
        (waits_in_its_own_send, "a send of its own waits until it is received"),
        (two_kinds, "sent with send_object is received with recv_object"),
        (barrier_of_the_library, "from send and receive alone"),
        (barrier_of_rank_0, "from send and receive alone"),
        (not_begun, "Nothing of your own is written yet"),
        (waits_for_a_shared_list, "each has a memory of its own"),
    ],
)
def test_one_round_that_goes_wrong_meets_the_hint_that_fits(monkeypatch, answer, hint):
    monkeypatch.setattr(check.WorldCheck, "_timeout_s", 2)
    verdict = SpeaksInOrder(answer, 4).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint


def closes_the_circle(comm, speak, rounds):
    n = comm.world_size
    for number in range(rounds):
        if comm.rank or number:
            comm.recv_object((comm.rank - 1) % n)
        speak()
        tell(comm, (comm.rank + 1) % n)


def waits_before_it_tells(comm, speak, rounds):
    for _ in range(rounds):
        if comm.rank == 0:
            speak()
            comm.recv_object(comm.world_size - 1)
            tell(comm, 1)
        else:
            comm.recv_object(comm.rank - 1)
            speak()
            tell(comm, (comm.rank + 1) % comm.world_size)


def back_through_all(comm, speak, rounds):
    for _ in range(rounds):
        in_order(comm, speak)
        if comm.rank < comm.world_size - 1:
            comm.recv_object(comm.rank + 1)
        if comm.rank > 0:
            tell(comm, comm.rank - 1)


def barrier_after_a_round(comm, speak, rounds):
    for _ in range(rounds):
        in_order(comm, speak)
        comm.barrier()


def one_round_only(comm, speak, rounds):
    in_order(comm, speak)


@pytest.mark.parametrize(
    "answer, rounds, hint",
    [
        (closes_the_circle, 2, "Who has to know of the last turn?"),
        (waits_before_it_tells, 2, "Who has spoken and has told nobody yet?"),
        (back_through_all, 2, "Which of yours tell nobody anything new?"),
        (barrier_after_a_round, 1, "from send and receive alone"),
        (one_round_only, 2, "in one round only"),
        (one_round_only, 0, "In no rounds nobody speaks"),
    ],
)
def test_rounds_that_go_wrong_meet_the_hint_that_fits(answer, rounds, hint):
    verdict = SpeaksInRounds(answer, 4, rounds).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint


def asks_everybody(comm, prepare, speak):
    prepare()
    if comm.rank > 0:
        tell(comm, 0)
    else:
        for other in range(1, comm.world_size):
            comm.recv_object(other)
    in_order(comm, speak)


def prepares_afterwards(comm, prepare, speak):
    in_order(comm, speak)
    prepare()


def rank_0_prepares_for_all(comm, prepare, speak):
    if comm.rank == 0:
        prepare()
    in_order(comm, speak)


@pytest.mark.parametrize(
    "answer, hint",
    [
        (asks_everybody, "Which of yours tell nobody anything new?"),
        (prepares_afterwards, "has to call prepare() before speak()"),
        (rank_0_prepares_for_all, "Follow rank 1 through your function"),
    ],
)
def test_preparations_that_go_wrong_meet_the_hint_that_fits(answer, hint):
    verdict = PreparesAndSpeaks(answer, 4).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint


def with_torch_distributed(comm, speak, rounds):
    n, turns = comm.world_size, range(comm.world_size * rounds)
    for turn in turns[comm.rank :: n]:
        if turn != turns[0]:
            dist.recv(torch.empty(1), src=(turn - 1) % n)
        speak()
        if turn != turns[-1]:
            dist.send(torch.ones(1), dst=(turn + 1) % n)


def test_messages_of_torch_distributed_count_as_those_of_comm():
    assert SpeaksInRounds(with_torch_distributed, 3, 2).judge().outcome == "pass"
