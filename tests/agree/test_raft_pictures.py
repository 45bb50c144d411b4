"""The picture of logs says what each log is; elections take what the paper says."""

import math
from functools import partial
from statistics import median

import pytest

from distlab import Call
from distlab.agree.raft import RaftStore
from distlab.agree.raft.election_time import UnequalFollower, downtimes_s
from distlab.agree.raft.picture import play_logs
from distlab.agree.raft.scenarios import take
from distlab.errors import InvalidArgument
from distlab.network import Client, replay, simulate, step_through
from distlab.show.player import NodeLog

PLAIN = partial(RaftStore, pre_vote=False)
WRITER = Client(0, [Call("write", "x", 1)])
ELECTED = [
    "the timer 'election' of node 0", "node 0 has synced",
    "node 1 gets 'RequestVote", "node 1 has synced", "node 0 gets 'Vote",
]  # fmt: skip
WRITTEN = [
    "client 0", "node 0 has synced", "node 1 gets 'AppendEntries", "node 1 has synced",
    "node 0 gets 'AppendReply", "node 1 crashes", "node 1 starts",
]  # fmt: skip


def stepped(beginnings):
    """Return (schedule, [(terms, commit index) of each node after each step])."""
    run, seen = step_through(PLAIN, 3, WRITER), []
    for some in [(), *((words,) for words in beginnings)]:
        take(run, *some)
        logs = [n and ([e.term for e in n.log.entries], n.commit) for n in run.nodes]
        seen.append(logs)
    return run.schedule, seen


def test_after_each_step_the_picture_has_each_nodes_terms_and_commit_index():
    schedule, seen = stepped(ELECTED + WRITTEN)
    animation = play_logs(PLAIN, 3, WRITER, schedule).animation
    assert len(animation.logs) == len(animation.frames) > 8
    for frame, logs in zip(animation.frames[1:-1], animation.logs[1:-1], strict=True):
        drawn = [log and ([*log.terms], log.commit) for log in logs]
        assert drawn == seen[int(frame.at_s) + 1]
    assert [log and ([*log.terms], log.commit) for log in animation.logs[-1]] == seen[
        -1
    ]
    assert any(None in logs for logs in animation.logs), "a dead node has no log"


def test_the_leader_and_its_log_are_in_the_text_alternative_and_in_the_still_picture():
    schedule, _ = stepped(ELECTED + WRITTEN[:-2])
    player = play_logs(PLAIN, 3, WRITER, schedule, "A write")
    words = "leader of term 1, entries of terms 1 1 from index 1 on, commit index 1"
    assert f"Node 0 at the end: {words}." in player.alt
    assert f", {len(schedule)} steps. 1." in player.alt
    assert "Node 1 takes 'AppendEntries term=1: 1 of 1' from node 0" in player.alt
    assert "node 0: leader, term 1" in player.strip()


def test_a_schedule_that_does_not_fit_is_named_with_the_reason():
    with pytest.raises(InvalidArgument, match=r"2 steps fit; then 'node 2 has synced"):
        play_logs(PLAIN, 3, (), [*stepped(ELECTED)[0][:2], "node 2 has synced 'raft'"])


def test_a_lost_disk_is_played_which_no_learner_can_pick():
    schedule = [*stepped(ELECTED)[0], "node 1 crashes and loses its disk"]
    logs = play_logs(
        PLAIN, 3, WRITER, [*schedule, "node 1 starts again"]
    ).animation.logs
    assert replay(PLAIN, 3, WRITER, schedule).fits == len(schedule)
    assert logs[-1][1] == NodeLog("follower", 0, (), 0, 0)


def test_equal_time_outs_elect_nobody_and_medians_fall_with_the_spread():
    assert set(downtimes_s((0.15, 0.15), trials=3)) == {math.inf}
    medians = [
        median(downtimes_s((0.15, 0.15 + s), trials=15)) for s in (0.005, 0.015, 0.05)
    ]
    assert medians == sorted(medians, reverse=True)
    assert medians[0] < 10 and 0.1 < medians[-1] < 0.3


def test_the_shortest_downtime_is_half_a_time_out_and_a_vote():
    """The leader dies up to half a time-out after its heartbeat; a vote takes 15 ms."""
    for least_s in (0.1, 0.2):
        shortest = min(downtimes_s((least_s, 1.2 * least_s)))
        assert least_s / 2 + 0.015 < shortest < 0.8 * least_s


def test_followers_have_logs_of_different_lengths_so_that_not_all_can_be_elected():
    nodes = simulate(UnequalFollower, 5, until_s=0.001).nodes
    assert [node.log.last for node in nodes] == [0, 1, 2, 3, 4]
    assert {node.term for node in nodes} == {1}


def test_a_number_of_trials_that_is_none_is_refused():
    with pytest.raises(InvalidArgument, match="trials=0"):
        downtimes_s((0.15, 0.3), trials=0)
