"""The film of nodes says what their trace says, in words of nodes and clients."""

import itertools
import json
import random
import re
from collections import Counter

import pytest
from artists import assert_legible, boxes, drawn, words
from traces import CRASHED, NODE_TRACES, ONE_LOST, SPLIT, STALE, nodes, point, sent

from distlab.errors import InvalidArgument
from distlab.show import compare, player, timeline
from distlab.show.player.data import player_data
from distlab.show.player.spacetime import ARRIVED, LOST, UNDER_WAY
from distlab.trace import Event, is_lost, words_of


def random_nodes(seed):
    """Return nodes that talk at random; messages are lost, late and doubled."""
    dice, events = random.Random(seed), []
    count, clients = dice.randint(1, 6), dice.randint(0, 4)
    for number in range(dice.randint(0, 60)):
        at = round(dice.uniform(0, 9), dice.choice([0, 3]))
        src = dice.randrange(count + clients)
        dst = dice.randrange(count)
        arrives = None if dice.random() < 0.2 else at + dice.random() * (src < count)
        events += sent(src, dst, number, at, arrives, f"word {number}")
        if arrives and dice.random() < 0.2:
            late = arrives + dice.random()
            events.append(
                Event(dst, late, late, "recv", src, 0, number, f"word {number}")
            )
    for node in dice.sample(range(count), min(2, count)):
        at = dice.uniform(0, 9)
        events.append(point(node, at, "crash", "fault"))
        if dice.random() < 0.6:
            events.append(point(node, at + 1, "restart", "fault"))
    if dice.random() < 0.5:
        events.append(point(0, 3, "partition 0 | 1 2", "fault", dice.choice([7, 7])))
    dice.shuffle(events)
    events.sort(key=lambda event: event.start)
    return nodes(events, size=count + clients, clients=clients)


TRACES = NODE_TRACES | {f"random {seed}": random_nodes(seed) for seed in range(20)}
TRACES["empty"] = nodes(size=4, clients=1)


def text_boxes(spacetime):
    """Return the box of all words in the space-time view."""
    for thing in (*spacetime.strands, *spacetime.signs):
        if thing.words:
            x, y, half = (
                thing.at[0] * spacetime.unit,
                thing.at[1],
                3.01 * len(thing.words),
            )
            yield thing.words, (x - half, y - 6, x + half, y + 6)


@pytest.mark.parametrize("name", TRACES)
def test_every_event_is_told_at_one_stop(name):
    trace, animation = TRACES[name], player(TRACES[name]).animation
    node_steps = [
        turn
        for stop in animation.shown_steps
        for turn in stop.node_steps
        if turn.lost is None
    ]
    described = [turn.cause for turn in node_steps if turn.cause is not None]
    described += [event for turn in node_steps for event in (*turn.sends, *turn.notes)]
    fit = [e for e in trace.events if not e.label.startswith("partition")]
    assert Counter(map(id, described)) == Counter(map(id, fit))
    times = [frame.at_s for frame in animation.frames]
    assert times == sorted(times)
    assert animation.frames[-1].sent == [
        len(trace.of(rank, "send")) for rank in range(trace.world_size)
    ]


@pytest.mark.parametrize("name", TRACES)
def test_every_message_is_an_arrow_from_its_sending_to_its_fate(name):
    animation = player(TRACES[name]).animation
    spacetime, messages = animation.spacetime, animation.happenings.messages
    for message in messages:
        strand = spacetime.strand_of(message)
        send, recv = message
        expected = ARRIVED if recv else LOST if is_lost(send) else UNDER_WAY
        assert strand.fate == expected
        assert strand.x0 < strand.x1 <= spacetime.count
        assert strand.y0 == spacetime.y[send.rank]
        if recv:
            assert strand.y1 == spacetime.y[recv.rank]
            assert strand.x1 >= animation.happenings.node_step_of[id(recv)].x
    assert len(spacetime.strands) == len(messages)


@pytest.mark.parametrize("name", TRACES)
def test_words_in_the_space_time_view_never_lie_on_each_other(name):
    spacetime = player(TRACES[name]).animation.spacetime
    placed = list(text_boxes(spacetime))
    for (one, a), (other, b) in itertools.combinations(placed, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one!r} lies on {other!r}"
    assert all(
        box[0] >= 0 and box[2] <= spacetime.count * spacetime.unit + 1
        for _, box in placed
    )


@pytest.mark.parametrize("name", NODE_TRACES)
def test_in_a_short_schedule_every_word_has_room(name):
    spacetime = player(NODE_TRACES[name]).animation.spacetime
    assert spacetime.wordless == 0 and spacetime.count <= 16
    shown = {strand.words for strand in spacetime.strands}
    assert {words_of(m) for m in NODE_TRACES[name].messages()} <= shown


@pytest.mark.parametrize("name", TRACES)
def test_nobody_is_a_rank_and_the_data_is_plain(name):
    played = player(TRACES[name], "Nodes")
    page = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", played.html(), flags=re.DOTALL)
    assert not re.search(r"\brank\b", page) and "rank" not in played.alt
    json.dumps(player_data(played.animation), allow_nan=False)
    assert "<svg" in played.strip()


def test_stops_are_told_in_terms_of_nodes_and_clients():
    assert [frame.text for frame in player(ONE_LOST).animation.frames[1:]] == [
        "Client 0 calls write x 1 at node 0. Node 0 takes it, and sends 'store x 1' to "
        "nodes 1 and 2 (dropped to node 2).",
        "Node 1 takes 'store x 1' from node 0, and sends 'stored x 1' to node 0.",
        "Node 0 takes 'stored x 1' from node 1, and answers client 0: 'ok'.",
    ]
    stale = player(STALE).animation.frames[-1]
    assert stale.title == "Client 1 calls read x"
    assert stale.text.endswith("Node 2 takes it, and answers client 1: 'None'.")


def test_a_split_is_a_wall_between_the_sides_while_it_lasts():
    animation = player(SPLIT).animation
    titles = [frame.title for frame in animation.frames]
    begin, end = (
        titles.index("Network partition: 0 | 1 2"),
        titles.index("The partition is over"),
    )
    cut = [bool(frame.cuts) for frame in animation.frames]
    assert [at for at, there in enumerate(cut) if there] == [*range(begin, end)]
    assert animation.frames[begin].cuts == [(0, 1), (0, 2)]
    ((x0, x1, y),) = animation.spacetime.walls
    assert (x0, x1) == (begin - 0.5, end - 0.5)
    assert animation.spacetime.y[0] < y < animation.spacetime.y[1]
    lost = [strand for strand in animation.spacetime.strands if strand.fate == LOST]
    assert len(lost) == 2 and all(strand.y1 == y for strand in lost)


def test_rows_of_one_side_lie_together_and_clients_beside_their_node():
    far = point(0, 5, "partition 0 2 | 1 3", "fault", 11)
    asks = sent(4, 3, 1, 0, 0, "read x")
    spacetime = player(nodes(far, asks, size=5, clients=1)).animation.spacetime
    assert spacetime.rows == [0, 2, 1, 3, 4] and len(spacetime.walls) == 1


def test_death_and_return_are_told_and_drawn():
    animation = player(CRASHED).animation
    described = {frame.title: frame.text for frame in animation.frames}
    assert "what it had not saved is gone" in described["Node 1 crashes"]
    assert "starts again, from what it had saved" in described["Node 1 starts again"]
    assert "Node 1 notes 'follower of term 2'." in described["Node 1 starts again"]
    titles = [frame.title for frame in animation.frames]
    down = range(titles.index("Node 1 crashes"), titles.index("Node 1 starts again"))
    dead = [at for at, frame in enumerate(animation.frames) if frame.dead == [1]]
    assert dead == [*down]
    (gone,) = (life for life in animation.spacetime.lives if life[3])
    assert gone[:3] == (animation.spacetime.y[1], down[0] - 0.6, down[-1] + 0.4)


def test_what_is_doubled_or_overtaken_is_said():
    text = player(CRASHED).alt
    assert "Node 2 takes 'store x 2' from node 0, a second time." in text
    assert "'store x 2' from node 0 to node 1 is dropped on its way." in text
    late = nodes(sent(0, 1, 1, 0, 5, "a"), sent(0, 1, 2, 1, 3, "b"), size=2)
    assert "takes 'b' from node 0. It was reordered: 'a'" in player(late).alt


def test_a_lost_message_ends_short_of_its_receiver_and_on_no_other_lane():
    animation = player(ONE_LOST).animation
    (lost,) = (strand for strand in animation.spacetime.strands if strand.fate == LOST)
    assert all(abs(lost.y1 - y) > 10 for y in animation.spacetime.y.values())
    assert lost.x1 <= 1


def test_what_is_still_under_way_at_the_end_is_drawn_and_told():
    trace = nodes(sent(0, 2, 1, 0, 1, "a")[:1], sent(0, 1, 2, 0, 1, "b"))
    animation = player(trace).animation
    (late,) = (
        strand for strand in animation.spacetime.strands if strand.fate == UNDER_WAY
    )
    assert (
        late.words == "a"
        and animation.spacetime.y[1] < late.y1 < animation.spacetime.y[2]
    )
    described = "At the end 'a' from node 0 to node 2 has not arrived."
    assert animation.frames[-1].text.endswith(described)
    assert timeline(trace).alt.endswith(described)


def test_what_goes_to_a_dead_node_ends_there():
    trace = nodes(point(1, 1, "crash", "fault"), sent(0, 1, 1, 2, None, "a"), size=2)
    animation = player(trace).animation
    assert animation.spacetime.strands[0].y1 == animation.spacetime.y[1]


def test_the_lanes_have_calls_from_call_to_answer_and_time_that_a_node_is_down():
    spans = player(CRASHED).animation.spans
    calls = [(s.start, s.end, s.label) for s in spans if s.state == "moving"]
    assert calls == [(0, 3, "write x 1 → ok"), (9, 12, "write x 2 → ok")]
    assert [(s.rank, s.start, s.end) for s in spans if s.state == "stuck"] == [
        (1, 3.5, 6)
    ]


def test_runs_of_nodes_are_not_compared_step_by_step():
    with pytest.raises(InvalidArgument, match="nodes"):
        compare(SPLIT, SPLIT)


def test_a_long_run_is_drawn_in_lines_and_the_rest_is_counted():
    talk = [sent(n % 2, 1 - n % 2, n, n, n + 0.5, f"m{n}") for n in range(400)]
    played = player(nodes(*talk, size=2))
    assert "more frames, which the player shows" in played.strip()
    assert "And 377 more frames." in played.alt


# ---- the timeline ---------------------------------------------------------------


@pytest.mark.parametrize("name", [*NODE_TRACES, "empty", "random 15", "random 18"])
def test_a_timeline_of_nodes_is_legible(name):
    assert_legible(timeline(TRACES[name], "Nodes"))


def test_a_timeline_shows_messages_losses_walls_and_deaths():
    split, crashed = timeline(SPLIT), timeline(CRASHED)
    assert len(drawn(split, "message")) == 15
    ((wall,),) = (artist.get_segments() for artist in drawn(split, "wall"))
    assert wall[0][0] < wall[1][0] and wall[0][1] == wall[1][1]
    assert {"node 0", "client 1", "store x 2", "timer retry"} <= {*words(split)}
    assert len(drawn(split, "lost")[0].get_xdata()) == 2
    assert len(drawn(crashed, "fault")) == 2
    assert len(boxes(crashed, "waits")) == 2
    assert "3 nodes and 1 client, 13 messages, 1 dropped, 1 crash, 12 s" in crashed.alt
    assert "rank" not in " ".join(words(split)) + split.alt
