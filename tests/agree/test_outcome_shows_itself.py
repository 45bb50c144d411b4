"""An outcome says in a line what happened, and carries the player."""

from traces import SPLIT, nodes, operation

from distlab.history import History
from distlab.network import Outcome

ASKED = [
    operation(0, "write", 1, 0, 3),
    operation(0, "write", 2, 6, None),
    operation(1, "read", None, 7, 9, 1),
    operation(1, "write", 3, 9.5, 9.6, outcome="failed"),
]


def test_the_summary_counts_operations_messages_and_drops():
    outcome = Outcome(History(ASKED), SPLIT, [], [], 15.0)
    assert repr(outcome) == (
        "3 nodes and 2 clients; 4 operations: 2 answered, 1 refused, 1 of "
        "unknown outcome; 11 messages between nodes, 2 dropped; 15 s"
    )


def test_in_a_notebook_the_player_is_folded_below_it():
    bundle = Outcome(History(ASKED), SPLIT, [], [], 15.0)._repr_mimebundle_()
    assert "2 answered, 1 refused" in bundle["text/plain"]
    assert "Play this run" in bundle["text/html"]
    assert 'data-view="space"' in bundle["text/html"]


def test_without_messages_there_is_nothing_to_play():
    outcome = Outcome(History(), nodes(size=3), [], [], 0.0)
    assert "no operations; 0 messages" in repr(outcome)
    assert "Play" not in outcome._repr_mimebundle_()["text/html"]
