"""From what a reduce_by_key did to the first nudge, the most specific one first."""

from collections.abc import Callable
from functools import reduce

__all__ = ["HINTS", "hint_for_operation", "hint_for_records", "hint_for_value"]

HINTS = {
    "action": "A transformation only adds to the recipe. Leave the work to the workers "
    "and the time of it to an action, which somebody else will call.",
    "zero": "Values need not be numbers, so there is no value to begin with. A key's "
    "first value is what it has so far, and function brings in the others.",
    "empty": "Each key is met for the first time once. What does the table hold for it "
    "then?",
    "no pair": "What comes out are pairs again, (key, value). Who walks through a "
    "dictionary gets only its keys; it has the pairs as .items().",
    "apart": "What has one key has to meet in one partition before it can become one: "
    "where is the shuffle?",
    "not merged": "After the shuffle a partition has pairs of one key from several map "
    "tasks, with other keys between them. They have met, and have not become one.",
    "on the way": "One of these values is the right one, and others are from on the "
    "way. When is the value of a key complete?",
    "runs": "Within a partition, pairs of one key may be far apart, with others "
    "between them. Do you see all of them before you hand out a result?",
    "one place": "One task has everything to do after the shuffle, and the others "
    "have nothing. By what does partitionBy place a key if nobody tells it?",
    "partitions": "partitionBy takes how many partitions there are to be.",
    "stages": "One shuffle is enough: what is combined before it is sent has to be "
    "brought together only once.",
    "bytes": "A record for each key is sent, but what is in it grows with the number "
    "of its values. Apply function before the shuffle, not only after it.",
    "partitioner": "Each key lies where it belongs, but the engine has forgotten it: "
    "it cannot know what mapPartitions does to keys. You know it: what else can "
    "mapPartitions be told?",
    "another function": "Two RDDs are partitioned in the same way if they have equally "
    "many partitions and the same function of the key. partitionBy brings one along.",
    "lies": "The RDD says that its keys are where its partitioner has them, and they "
    "are not.",
    "nested": "Only the driver can use an RDD or the Context. A function that runs on "
    "workers gets along with its records and with what travels with it.",
}


_NOTHING = (
    "Nothing comes out at all. An iterator over a partition can be walked through only "
    "once: the second time it is at its end."
)
_MISSING = (
    "A key is missing. Has something taken its pair from the iterator before? And a "
    "key or value may be 0, empty or None, or in one partition only."
)


def hint_for_operation(name: str) -> str:
    """Return a nudge for an operation in the lineage that has no business there."""
    if name in ("groupByKey", "cogroup"):
        return (
            "groupByKey sends every value as it is, and the work begins after the "
            "shuffle. Which part of it can be done before?"
        )
    if name in ("parallelize", "union"):
        return "The data is in partitions already. Which methods work on one at a time?"
    return (
        "What the engine does in an operation like this one is the exercise. The two "
        "methods that are shown above step 1 are enough."
    )


def hint_for_records(given: list[int], sent: list[int]) -> str:
    """Return a nudge for a shuffle of more records than there are keys.

    given, sent: how many pairs each map task had, and how many it sent.
    """
    if given == sent:
        return (
            "Every pair crosses the network as it is. What can a partition do with its "
            "own pairs of one key before they are sent?"
        )
    return (
        "Some pairs are combined before they are sent, and not all: within a "
        "partition, pairs of one key may be far apart."
    )


_TRUTH = (
    "0, an empty word and an empty list are values, too. Ask whether the key is in the "
    "dictionary, and not whether its value is true."
)


def hint_for_value(
    shares: list[list],
    function: Callable,
    yours: object,
    *,
    missing: bool,
    foreign: bool,
    nothing: bool,
    truth: bool,
) -> tuple[list[str], str]:
    """Return what a wrong value is, in lines, and a nudge.

    shares: the key's values in each partition that has any. missing, foreign: whether
    only the expected result has the key, or only yours. nothing: yours is empty. truth:
    whether all values are what comes of asking whether a value is true.
    """
    if foreign:
        return [], "There is a key that no pair has. Does a key change on its way?"
    if nothing:
        return [], _NOTHING
    if missing:
        return [], _MISSING
    values = [value for own in shares for value in own]
    partial = [reduce(function, own) for own in shares]
    told = [f"Its values are {_few(values)}."]
    if truth and None not in values:
        return told, _TRUTH
    if len(shares) > 1 and any(_same(yours, one) for one in partial):
        return told, (
            "This is what one partition has of the key. Later ones replace it, where "
            "function should bring them together."
        )
    if None in values:
        return told, (
            "None is a value like others, and get() returns it for a key that is not "
            "there, too. Ask whether the key is in the dictionary."
        )
    if any(_same(yours, one) for one in values) and not all(values):
        return told, _TRUTH
    if any(_same(yours, one) for one in values):
        return told, "Only one of the values is left: function brings two together."
    if yours in (0, "", [], 1):
        return told, (
            "This is none of the key's values. Where does it come from? A key's first "
            "value is what there is to begin with."
        )
    return told, (
        "Is every value of the key in it, and none twice? An iterator over a partition "
        "can be walked through only once."
    )


def _same(one, other):
    return repr(one) == repr(other)


def _few(values):
    shown = ", ".join(map(repr, values[:6]))
    return shown + (f" and {len(values) - 6} more" if len(values) > 6 else "")
