"""The stores, driven by hand: every message is delivered, lost or held back here."""

import random
from functools import partial

import pytest
from by_hand import Hands, cut_off

from distlab.agree import (
    Causal,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
)
from distlab.errors import InvalidArgument

POSITIONS = {
    "synchronous": PrimaryCopy,
    "asynchronous": partial(PrimaryCopy, synchronous=False),
    "synchronous, read any": partial(PrimaryCopy, read_at="any"),
    "asynchronous, read any": partial(PrimaryCopy, synchronous=False, read_at="any"),
    "quorum": Quorum,
    "read one": partial(Quorum, reads=1, write_back=False),
    "causal": Causal,
    "last writer wins": LastWriterWins,
    "version vectors": VersionVectors,
}


@pytest.mark.parametrize("make", POSITIONS.values(), ids=POSITIONS)
def test_every_node_reads_what_any_node_wrote(make):
    hands = Hands(make)
    for node in range(3):
        hands.call(node, "write", "x", node)
        hands.settle()
        assert [hands.call(n, "read", "x") for n in range(3)] == [node] * 3
        assert hands.call(node, "read", "y") is None


@pytest.mark.parametrize("make", POSITIONS.values(), ids=POSITIONS)
def test_what_was_answered_survives_a_crash_of_every_node(make):
    hands = Hands(make)
    hands.call(1, "write", "x", 1)
    hands.call(2, "write", ("y", 0), (2,))
    for node in range(3):
        hands.start(node)
    hands.settle()
    assert [hands.call(n, "read", "x") for n in range(3)] == [1] * 3
    assert [hands.call(n, "read", ("y", 0)) for n in range(3)] == [(2,)] * 3


def test_quorums_of_other_sizes_wait_only_for_what_they_need():
    hands = Hands(partial(Quorum, reads=1, writes=3, write_back=False))
    assert hands.delays(0, "write", "x", 1) == 2
    assert hands.delays(1, "read", "x") == 0
    alone = Hands(Quorum, nodes=1)
    assert alone.delays(0, "write", "x", 1) == alone.delays(0, "read", "x") == 0


def test_a_minority_refuses_reads_and_writes_and_leaves_nothing_behind():
    hands = Hands(Quorum)
    read, write = hands.ask(2, "read", "x"), hands.ask(2, "write", "x", 1)
    hands.deliver(cut_off(2))
    hands.ring()
    assert hands.answers == dict.fromkeys((read, write), "only 1 of 3 replicas answers")
    hands.settle()
    assert [hands.call(n, "read", "x") for n in range(3)] == [None] * 3


def test_a_write_that_may_have_reached_someone_is_not_refused_and_is_done_later():
    hands = Hands(Quorum)
    write = hands.ask(2, "write", "x", 1)
    hands.deliver(lambda sender, to, message: type(message).__name__ != "Keep")
    for _ in range(5):
        hands.ring()
        hands.deliver(cut_off(2))
    assert write not in hands.answers
    hands.settle()
    assert hands.answers[write] is None
    assert [hands.call(n, "read", "x") for n in range(3)] == [1] * 3


def test_a_write_that_a_coordinator_had_chosen_before_its_crash_keeps_its_version():
    hands = Hands(Quorum)
    first = hands.ask(0, "write", "x", "first")
    hands.deliver(lambda sender, to, message: type(message).__name__ != "Keep")
    hands.start(0)
    hands.call(0, "write", "x", "second")
    versions = [hands.nodes[n].copies["x"].version for n in range(3)]
    assert first not in hands.answers
    assert versions == [(2, 0)] * 3


def test_two_writes_through_one_coordinator_at_once_have_two_versions():
    hands = Hands(Quorum)
    one, other = hands.ask(0, "write", "x", 1), hands.ask(0, "write", "x", 2)
    hands.deliver()
    assert hands.answers == {one: None, other: None}
    copies = {hands.nodes[n].copies["x"] for n in range(3)}
    assert copies == {((2, 0), 2)}


def test_an_answer_to_a_call_from_before_a_crash_counts_for_no_other_call():
    hands = Hands(Quorum)
    hands.ask(0, "read", "x")
    hands.deliver(lambda sender, to, message: type(message).__name__ == "Ask")
    hands.ask(0, "read", "x")
    late, hands.mail = hands.mail, []
    hands.start(0)
    hands.call(1, "write", "x", 1)
    request = hands.ask(0, "read", "x")
    hands.mail = late
    hands.deliver()
    assert request not in hands.answers


@pytest.mark.parametrize("times", [1, 2])
def test_a_forwarded_cas_is_done_once_however_often_its_message_comes(times):
    hands = Hands(partial(PrimaryCopy, synchronous=False))
    swap = hands.ask(1, "cas", "x", (None, 1))
    hands.mail *= times
    hands.deliver()
    fails = hands.ask(2, "cas", "x", (None, 2))
    again = list(hands.mail)
    hands.deliver()
    hands.call(0, "write", "x", None)
    hands.mail += again
    hands.deliver()
    assert (hands.answers[swap], hands.answers[fails]) == (True, False)
    assert hands.call(0, "read", "x") is None


def test_a_primary_knows_after_a_crash_what_it_has_done_and_answers_it():
    hands = Hands(PrimaryCopy)
    write = hands.ask(1, "write", "x", 1)
    hands.deliver(cut_off(2))
    assert write not in hands.answers
    hands.start(0)
    hands.settle()
    assert hands.answers[write] is None
    assert [len(node.log) for node in hands.nodes] == [1] * 3


def test_a_backup_never_has_a_later_line_without_the_earlier_ones():
    for seed in range(20):
        hands = Hands(partial(PrimaryCopy, synchronous=False, read_at="any"))
        dice = random.Random(seed)
        for value in range(6):
            hands.ask(0, "write", "x", value)
        while hands.mail:
            dice.shuffle(hands.mail)
            _, to, message = hands.mail.pop()
            hands.do(to, hands.nodes[to].on_message(0, message))
            hands.mail = [m for m in hands.mail if m[1] != 0]
            assert hands.nodes[to].log == hands.nodes[0].log[: len(hands.nodes[to].log)]


def test_reads_that_the_primary_does_not_answer_are_refused_and_writes_are_not():
    hands = Hands(PrimaryCopy)
    read, write = hands.ask(1, "read", "x"), hands.ask(1, "write", "x", 1)
    hands.deliver(cut_off(0))
    hands.ring()
    assert hands.answers == {read: "the primary, node 0, does not answer"}
    hands.settle()
    assert hands.answers[write] is None


def write_on_both_sides(make):
    hands = Hands(make)
    hands.call(0, "write", "x", "before")
    hands.settle()
    hands.ask(0, "write", "x", "left")
    hands.ask(2, "write", "x", "right")
    hands.deliver(cut_off(2))
    return hands


def test_version_vectors_keep_both_until_one_who_has_read_them_writes():
    hands = write_on_both_sides(VersionVectors)
    hands.settle()
    for node in range(3):
        assert sorted(hands.call(node, "read", "x")) == ["left", "right"]
    hands.call(1, "write", "x", "both")
    hands.settle()
    assert [hands.call(n, "read", "x") for n in range(3)] == ["both"] * 3


def test_a_write_by_who_has_not_read_the_siblings_stands_beside_them():
    hands = write_on_both_sides(VersionVectors)
    hands.settle()
    hands.call(2, "write", "x", "right again")
    hands.settle()
    assert sorted(hands.call(0, "read", "x")) == ["left", "right again"]


def test_a_crash_makes_no_two_writes_alike_and_loses_none():
    hands = write_on_both_sides(VersionVectors)
    hands.start(0)
    hands.call(0, "write", "x", "after the crash")
    hands.settle()
    assert set(hands.call(1, "read", "x")) >= {"right", "after the crash"}


@pytest.mark.parametrize("make", POSITIONS.values(), ids=POSITIONS)
def test_an_operation_that_a_store_does_not_know_is_refused_in_words(make):
    hands = Hands(make)
    request = hands.ask(0, "increment", "x")
    assert "knows read" in hands.answers[request]
    assert "'increment'" in hands.answers[request]


def test_causal_order_holds_whatever_is_lost_doubled_or_overtaken():
    for seed in range(30):
        hands, dice = Hands(Causal), random.Random(seed)
        for value in range(15):
            node = dice.randrange(3)
            hands.ask(node, "write", dice.choice("xy"), value)
            if dice.random() < 0.2:
                hands.start(dice.randrange(3))
            dice.shuffle(hands.mail)
            for sender, to, message in hands.mail[: dice.randrange(4)] * 2:
                hands.do(to, hands.nodes[to].on_message(sender, message))
            del hands.mail[: dice.randrange(6)]
            for node in hands.nodes:
                known = [(w.writer, w.clock[w.writer]) for w in node.writes]
                assert len(known) == len(set(known))
                for place, write in enumerate(node.writes):
                    for other, count in enumerate(write.clock):
                        needs = {(other, n) for n in range(1, count + 1)}
                        assert needs <= set(known[: place + 1])
        hands.settle()
        assert hands.nodes[0].copies == hands.nodes[1].copies == hands.nodes[2].copies


@pytest.mark.parametrize(
    "make",
    [
        partial(Quorum, reads=4),
        partial(Quorum, writes=0),
        partial(PrimaryCopy, primary=3),
        partial(PrimaryCopy, read_at="backup"),
    ],
)
def test_a_knob_that_no_store_of_three_has_is_named_with_what_it_can_be(make):
    (knob, value) = next(iter(make.keywords.items()))
    with pytest.raises(InvalidArgument, match=f"{knob}={value!r}: .*(1|2|any)"):
        make(0, [1, 2])


def test_an_answer_that_comes_twice_counts_once():
    hands = Hands(Quorum, nodes=5)
    read = hands.ask(0, "read", "x")
    asked, hands.mail = hands.mail, []
    for _ in range(5):
        hands.mail = [mail for mail in asked if mail[1] == 1]
        hands.deliver()
    assert read not in hands.answers


def test_a_replica_that_missed_a_write_is_given_it_after_the_split():
    hands = Hands(Quorum)
    hands.ask(0, "write", "x", 1)
    hands.deliver(cut_off(2))
    assert "x" not in hands.nodes[2].copies
    hands.ring()
    hands.deliver()
    assert hands.nodes[2].copies["x"].value == 1
    assert not hands.nodes[0].work and not hands.timers


def test_a_synchronous_primary_waits_until_this_very_write_is_copied():
    hands = Hands(PrimaryCopy)
    hands.ask(0, "write", "x", 1)
    late, hands.mail = hands.mail, []
    second = hands.ask(0, "write", "x", 2)
    hands.mail = late
    hands.deliver()
    assert second not in hands.answers


def test_a_backup_that_has_forgotten_lines_copies_none_in_their_place():
    class ForgetfulPrimary(PrimaryCopy):
        def on_start(self, saved):
            return super().on_start({})

    hands = Hands(ForgetfulPrimary)
    hands.call(0, "write", "x", 1)
    hands.start(2)
    hands.ask(0, "write", "y", 2)
    hands.deliver()
    assert hands.nodes[2].log == []
