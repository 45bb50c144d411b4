"""The story of a failure where the ranks' notes say less, or more, than one expects."""

import math
import os

import pytest

from distlab.diagnosis import Failure, RankOutcome, tell
from distlab.processes import anonymous_file
from distlab.recorder import Recorder, SharedTrace


@pytest.fixture
def notes():
    """Return a board, and the recorders of its two ranks."""
    block = anonymous_file("notes")
    board = SharedTrace(2, block)
    recorders = [Recorder(rank, 2, block) for rank in range(2)]
    board.begin()
    yield board, recorders
    board.close()
    os.close(block)


def described(board, kind, outcomes):
    failure = Failure(kind, outcomes={o.rank: o for o in outcomes}, timeout_s=5)
    return tell(failure, board, (), ["", ""])


RETURNED = [RankOutcome(0, "returned", 7.0), RankOutcome(1, "returned", 6.0)]


def test_a_time_out_that_all_ranks_just_missed_says_so(notes):
    error = described(notes[0], "timeout", RETURNED)
    assert error.cause.startswith("rank 0 did not return within ")
    assert error.cause.endswith(", but just after") and error.rank == 0
    assert "rank 1 had returned" in str(error)


def test_an_interrupt_says_how_far_the_ranks_were(notes):
    board, recorders = notes
    assert str(described(board, "interrupted", [])) == "before the ranks had begun"
    for recorder in recorders:
        recorder.begin()
    lines = str(described(board, "interrupted", RETURNED[:1])).splitlines()
    assert lines[0] == "rank 1 has not returned"
    lines = str(described(board, "interrupted", RETURNED)).splitlines()
    assert lines[0] == "as the last rank ended"


def test_what_is_broken_off_is_one_event_while_its_rank_still_waits(notes):
    board, (recorder, _) = notes
    recorder.now("blocked", "collective", since=board.began + 2)
    assert [event.end for event in board.trace().of(0)] == [None]
    recorder.event("collective", board.began + 2, math.nan)
    assert [event.end for event in board.trace().of(0)] == [None]
