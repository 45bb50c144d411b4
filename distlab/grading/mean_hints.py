"""From what was seen of a job of means to a first nudge."""

from distlab.dataflow.trial import Odd

__all__ = [
    "hint_for_bytes",
    "hint_for_keys",
    "hint_for_loads",
    "hint_for_mean",
    "hint_for_pairs",
]


def hint_for_keys(odd: object, files: dict) -> str:
    """Return a nudge for a key that is no (name, first word), or for none at all."""
    if odd is None:
        return "Every line has a pair, a blank one, too."
    if odd in files:
        return "The key is the file's name and the line's first word, as a tuple."
    return "The key is a tuple (name, word) of two strings, in this order."


def hint_for_mean(key: tuple, lines: list[str], found: object, job: str):
    """Return (what is wrong, nudge) for one key.

    lines: those that begin so. job: "alone" without a combiner, "lost" if with one some
    mean is longer than any line that it is of, else "combined".
    """
    name, word = key
    lengths = [len(line) for line in lines]
    if not lengths:
        return f"No line of {name} begins with {word!r}.", _OTHER_WORD
    known = f"{len(lengths)} lines of {name} begin with {word!r}, "
    known += f"{sum(lengths)} characters in all."
    if job != "alone":
        return known, _hint_for_grouping(lengths, found, job == "lost")
    return known, _hint_for_value(word, lines, lengths, found)


def _hint_for_value(word, lines, lengths, found):
    """Return a nudge for a mean that is wrong even though nothing was combined."""
    if found is None:
        return _BLANK if not word else _OTHER_WORD
    if type(found) is tuple:
        return "These are a sum and a count. The reducer divides at the end."
    if isinstance(found, Odd) or type(found) not in (int, float):
        return "The value of a key is one number, the mean."
    stripped = [len(line.strip()) for line in lines]
    known = {
        sum(lengths): "That is the sum of the lengths. A mean divides it by the count.",
        len(lengths): "That is how many lines there are, and not how long they are.",
        sum(lengths)
        // len(lengths): "A mean is no whole number: / divides, // rounds.",
        round(sum(lengths) / len(lengths)): "A mean is no whole number; do not round.",
        sum(stripped) / len(lengths): _AS_IT_STANDS,
        sum(len(line.lstrip()) for line in lines) / len(lengths): _AS_IT_STANDS,
        sum(lengths) / len(lengths) + 1: "A line comes without its end.",
    }
    return known.get(found, "Add the lengths up, count them, and divide in the end.")


def _hint_for_grouping(lengths, found, lost):
    """Return a nudge for a mean that was right as long as nothing was combined."""
    if found is None:
        return "A combiner drops no key: what it does not give, no reducer gets."
    if type(found) not in (int, float):
        return "With a combiner the reducer has to give the same as without."
    if lost:
        return (
            "A mean is longer than the longest of its lines, so some are not counted. "
            "A value that the combiner made stands for several lines."
        )
    if found < min(lengths):
        return "Some lengths are lost, or counted twice, when values are combined."
    return (
        "Without the combiner it is right. A mean of means is not the mean, if one of "
        "them is of more lines than the other. What has to travel besides?"
    )


def hint_for_pairs(job) -> str:
    """Return a nudge for more pairs than keys in a map task."""
    if job.shuffled_records == job.mapped_records:
        return (
            "All that the mapper gave was sent. The combiner makes one value of all "
            "that one map task has for a key: return it, or yield it once."
        )
    return "A combiner that yields several values for a key has them all sent."


def hint_for_bytes() -> str:
    """Return a nudge for values that are as long as what they stand for."""
    return (
        "One value for each key, but a long one. Two numbers are enough to know of any "
        "number of lines."
    )


def hint_for_loads(homes: dict[str, int], sizes: dict[str, int]) -> str:
    """Return a nudge for loads that are not even."""
    used = set(homes.values())
    if len(used) == 1 and len(homes) > 1:
        return "One reducer gets everything, and the others have nothing to do."
    return (
        "Large files meet in one reducer. The sizes are known before the job begins: "
        "which file do you place first, and where?"
    )


_BLANK = "A blank line begins with no word, which is the empty string, and counts, too."
_OTHER_WORD = "first_word(line) gives the word that a line begins with."
_AS_IT_STANDS = "The length is that of the line as it stands, with what it is indented."
