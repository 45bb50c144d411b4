"""From what a join with a small table did to the first nudge."""

__all__ = ["HINTS", "hint_for_pairs"]

HINTS = {
    "action": "The large side stays where it is. The table goes to the workers, and "
    "nothing runs before somebody asks for a result.",
    "action elsewhere": "The small side is a list, and in the driver already. What you "
    "make of it is made there, without a job.",
    "unwritten": "Nothing of your own is written yet. Which of the two sides has to "
    "travel, and what should a worker find in it?",
    "handle": "What travels is a handle, and the table is its .value.",
    "no pair": "What comes out are pairs (key, (value of the large one, value of the "
    "small one)), as rdd.join gives them.",
    "shuffle": "A shuffle moves every pair of the large side. If each worker has the "
    "whole table, which pairs have to move at all?",
    "another rdd": "The table is small, and is no RDD: it can lie in the memory of "
    "each worker, where a dictionary finds a key at once.",
    "in each task": "What a function uses from outside travels with it, in every stage "
    "and to every task. context.broadcast(table) hands it to each worker once.",
    "value outside": "There is a broadcast, and .value was read in the driver, so that "
    "the table itself became part of the function. Where must .value be read?",
    "pieces": "One table needs one broadcast, which each worker fetches once.",
    "search": "For each record the whole table is walked through, or made anew. Which "
    "structure finds a key in one step, and when is it built?",
    "endless": "It ran for too long. What does one record cost if the table is long? "
    "Which structure finds a key in one step, and when is it built?",
    "nested": "Only the driver can use an RDD or the Context. From a broadcast a "
    "worker reads .value.",
    "empty": "A key of the large side need not be in the table. Then it has no pair.",
}


def hint_for_pairs(large: list, small: list, yours: list[str]) -> str:
    """Return a nudge for a key whose pairs are wrong.

    large, small: its values on both sides. yours: what came out for it, as words.
    """
    if not small or not large:
        return "A pair comes out only for a key that is on both sides."
    if any(_turned(large, small, one) for one in yours):
        return "The value of the large side comes first in each pair."
    wanted = len(large) * len(small)
    if any(repr(small) in one or repr(tuple(small)) in one for one in yours):
        return (
            "A key with several values on the small side gives a pair for each of them."
        )
    if len(yours) == len({repr((a, b)) for a in large for b in small}) < wanted:
        return "A value that stands twice in the small table gives a pair each time."
    if not all(small) and len(yours) < wanted:
        return (
            "0, None and an empty word are values like others. Is the key in the table?"
        )
    if len(yours) < wanted and len(small) > 1:
        return (
            "The small side has several values for this key, and a dictionary of pairs "
            "keeps one. What should it hold for a key?"
        )
    if len(yours) < wanted:
        return "A pair of the large side is missing. Is every record looked up?"
    return "Each value of the large side meets each of the small side once."


def _turned(large, small, one):
    pairs = {repr((a, b)) for a in large for b in small}
    turned = {repr((b, a)) for a in large for b in small}
    return one in turned and one not in pairs
