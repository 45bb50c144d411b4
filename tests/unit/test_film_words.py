"""What a film says in words is so: who sends, what goes wrong, and how it ended."""

import pytest
from traces import barrier, message, point

from distlab.show.player.animation import Animation
from distlab.show.player.painter import Painter
from distlab.trace import Contributions, Event, Shares, Trace


def said(trace):
    return [f"{frame.title}: {frame.text}" for frame in Animation(trace).frames]


# ---- what is said ---------------------------------------------------------------


def test_every_rank_sends_only_if_every_rank_does():
    ring = [e for r in range(4) for e in message(r, (r + 1) % 4, 0, 1)]
    described = "Every rank r sends one message, 8 B, to rank r "
    assert f"{described}+ 1 (3 to 0)." in said(Trace(4, ring))[1]
    back = [e for r in range(4) for e in message(r, (r - 1) % 4, 0, 1)]
    assert f"{described}- 1 (0 to 3)." in said(Trace(4, back))[1]
    one = [e for _ in range(4) for e in message(0, 1, 0, 1)]
    assert "Every rank" not in said(Trace(4, one))[1]


def test_a_stop_has_the_label_that_its_ranks_had_marked():
    events = [point(0, 0, "gather"), Event(0, 0, 5, "recv", 1, 8, 1, "")]
    events += [
        Event(1, 1, 5, "send", 0, 8, 0, ""),
        Event(0, 5, 5, "mark", None, 0, 1, "back"),
    ]
    events += [Event(0, 5, 9, "send", 1, 8, 2, ""), Event(1, 5, 9, "recv", 0, 8, 2, "")]
    assert [described.split(":")[0] for described in said(Trace(2, events))][1:] == [
        "Gather",
        "Back",
    ]


def test_clocks_that_contradict_each_other_are_counted_in_a_note():
    backwards = [*message(0, 1, 0, 1)[:1], Event(1, -5, -3, "recv", 0, 8, 1, "")]
    assert any(
        "1 message arrived before" in n for n in Animation(Trace(2, backwards)).notes
    )
    assert not Animation(Trace(2, message(0, 1, 0, 1))).notes


def table(n, *rows):
    """Return the `Shares` of one chunk: for each rank its (step, counts)."""
    held = [[(step, (counts,)) for step, counts in row] for row in rows]
    return Shares([0, 4], held, {})


def test_tables_of_a_round_are_those_after_the_last_call_in_it():
    """Rank 0 gets two messages in one round; that of its later call is listed first."""
    shares = table(
        3,
        [(0, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1))],
        [(0, (0, 1, 0))],
        [(0, (0, 0, 1))],
    )
    carried = {(1, 0): (0, 1, 0), (2, 0): (0, 0, 1)}
    shares.sent = {pair: [Contributions((0,), (c,))] for pair, c in carried.items()}
    events = [
        Event(2, 0, 1, "send", 0, 8, 1, ""),
        Event(1, 0.5, 1, "send", 0, 8, 1, ""),
    ]
    events += [
        Event(0, 0.1, 1, "recv", 1, 8, 2, ""),
        Event(0, 0.1, 1, "recv", 2, 8, 3, ""),
    ]
    frames = Animation(
        Trace(3, events + message(0, 1, 2, 3, step=4), shares=shares)
    ).frames
    assert frames[1].tables[0, 0] == (1, 1, 1)


MISTAKES = {
    "double": ((1, 2, 0), "Rank 0 counts the contribution of rank 1 more than once."),
    "lost": ((0, 1, 0), "Rank 0 loses the contribution of rank 0."),
    "lost to more than there was": (
        (0, 1, 1),
        "Rank 0 loses the contribution of rank 0.",
    ),
    "nothing left": ((0, 0, 0), "Rank 0 loses the contribution of rank 0."),
    "no sum": (None, "Rank 0 is no sum of whole contributions any more."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_at_the_stop_where_it_happens(name):
    after, sentence = MISTAKES[name]
    own = [[(0, (0, 1, 0))], [(0, (0, 0, 1))]]
    shares = table(3, [(0, (1, 0, 0)), (1, after)], *own)
    events = message(1, 0, 0, 1) + message(0, 2, 2, 3, step=2)
    first, second = said(Trace(3, events, shares=shares))[1:]
    assert sentence in first and sentence not in second
    assert "At the end 0 of 3 tensors are complete." in second


# ---- what breaks ----------------------------------------------------------------

KILLED = [
    *message(0, 1, 0, 2, 40),
    Event(0, 3, None, "send", 1, 40, 2, ""),
    Event(1, 5, None, "recv", 0, 40, 2, ""),
    point(2, 4, "kill", "fault"),
    barrier(0, 6, None, 3),
]


def test_death_is_the_last_stop_and_says_who_died_and_who_waits():
    animation = Animation(Trace(3, KILLED, cut_s=8))
    last = animation.frames[-1]
    assert (last.title, last.broken, last.at_s) == ("How it ended", True, 8)
    assert [(m.src, m.dst, m.sent, m.fate) for m in last.moves] == [
        (0, 1, 0, "waiting")
    ]
    assert last.text == (
        "Rank 2 was killed; rank 0 is left in send to 1, barrier; rank 1 is left in "
        "recv from 0. The world was stopped 8 s in."
    )
    assert last.sent == [40, 0, 0] and animation.stuck == [0, 1]


def test_a_rank_that_came_back_is_told_where_it_happened_and_ends_nothing():
    events = [*message(0, 1, 0, 1), *message(0, 1, 4, 5), *message(0, 1, 7, 8)]
    events += [point(1, 2, "crash", "fault"), point(1, 3, "restart", "fault")]
    first, second, third = said(Trace(3, events))[1:]
    assert "Rank 1 crashes. Rank 1 starts again." in second
    assert "crash" not in first + third and "restart" not in first + third


def test_only_ranks_that_are_gone_are_crossed_out():
    events = [*message(0, 1, 0, 1), point(2, 4, "kill", "fault")]
    events += [point(1, 2, "crash", "fault"), point(1, 3, "restart", "fault")]
    events += [point(0, 5, "partition 0 | 1 2", "fault", 6)]
    animation = Animation(Trace(3, events))
    drawn = Painter(animation).dynamic(len(animation.frames) - 1)
    assert drawn.count('class="cross"') == 1


def test_a_message_that_the_network_lost_is_said_and_counts_as_sent():
    (_, frame) = Animation(Trace(2, message(0, 1, 0, 1, 9, 1, "dropped")[:1])).frames
    assert frame.text == "1 message dropped on the way."
    assert frame.sent == [9, 0] and frame.moves[0].fate == "dropped"


def test_a_partition_is_told_with_its_sides():
    split = point(0, 0.5, "partition 0 | 1", "fault", 3)
    animation = Animation(Trace(2, [*message(0, 1, 0, 1), split, *message(1, 0, 4, 5)]))
    assert "The network is partitioned 0 | 1." in animation.frames[1].text
    assert not animation.frames[-1].broken


@pytest.mark.parametrize(
    ("label", "fate"), [("kill", "is gone"), ("died", "is gone"), ("hang", "hangs")]
)
def test_who_waits_for_a_lost_rank_is_told_what_became_of_it(label, fate):
    stuck = [Event(0, 1, None, "recv", 2, 8, 1, ""), point(2, 0, label, "fault")]
    stuck.append(Event(1, 1, None, "recv", 0, 8, 1, ""))
    text = Animation(Trace(3, stuck, cut_s=2)).frames[-1].text
    assert f"rank 0 is left in recv from 2, which {fate}; rank 1 is left" in text
    assert "rank 1 is left in recv from 0." in text
