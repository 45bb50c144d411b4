"""From what was seen of a job of means to a first nudge."""

__all__ = [
    "OF_THE_KEY",
    "OF_THE_PROCESS",
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
    pair = "The key is a tuple (name, word) of two strings, in this order"
    return f"{pair}, and the name is the one that the mapper is given."


def hint_for_mean(wrong: dict[tuple, tuple[list[str], object]], *, combined: bool):
    """Return (what is known of the first wrong key, nudge).

    wrong: key -> (the lines that begin so, the value found). combined: whether the job
    had a combiner, without which it was right.
    """
    (name, word), (lines, _) = next(iter(wrong.items()))
    if not lines:
        return f"No line of {name} begins with {word!r}.", _OTHER_WORD
    known = f"{len(lines)} lines of {name} begin with {word!r}, "
    known += f"{sum(map(len, lines))} characters in all."
    odd = next((v for _, v in wrong.values() if type(v) not in (int, float)), 0)
    if odd != 0:
        return known, _hint_for_odd(word, odd, combined)
    return known, (_hint_for_grouping if combined else _hint_for_means)(wrong.values())


def _hint_for_odd(word, odd, combined):
    """Return a nudge for a key without a value, or with one that is no number."""
    if combined:
        return "With a combiner the reducer has to give the same as without."
    if odd is None:
        return _OTHER_WORD if word else _BLANK
    if type(odd) is tuple:
        return "These are a sum and a count. The reducer divides at the end."
    return "The value of a key is one number, the mean."


def _hint_for_means(wrong):
    """Return the nudge that fits all means that are wrong without a combiner."""
    for other, hint in _OTHERS:
        if all(abs(other(lines) - found) < 1e-6 for lines, found in wrong):
            return hint
    return "Add the lengths up, count them, and divide in the end."


def _mean(lines):
    return sum(map(len, lines)) / len(lines)


def _hint_for_grouping(wrong):
    """Return a nudge for means that were right as long as nothing was combined."""
    apart = [found - _mean(lines) for lines, found in wrong]
    if min(apart) > 0 and len(apart) >= _SEVERAL:
        return (
            "All these means are too long, so some lines are not counted. A value that "
            "the combiner made stands for several lines."
        )
    if max(apart) < 0 and len(apart) >= _SEVERAL:
        return "All these means are too short. Which lengths does the combiner lose?"
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


OF_THE_KEY = (
    "A key's pairs come from many map tasks, and have to meet in one reducer. The "
    "partitioner may look at the key, and at nothing else."
)
OF_THE_PROCESS = (
    "hash() of a string is another number in every Python that is started, and so is "
    "the order of a set of strings. Map tasks on two machines would send one key to "
    "two reducers."
)
_SEVERAL = 4  # so many are not on one side by chance
_BLANK = "A blank line begins with no word, which is the empty string, and counts, too."
_OTHER_WORD = "first_word(line) gives the word that a line begins with."
_AS_IT_STANDS = "The length is that of the line as it stands, with what it is indented."
_OTHERS = [
    (
        lambda lines: sum(map(len, lines)),
        "That is the sum of the lengths. A mean divides it by the count.",
    ),
    (len, "That is how many lines there are, and not how long they are."),
    (
        lambda lines: sum(map(len, lines)) // len(lines),
        "A mean is no whole number: / divides, and // rounds down.",
    ),
    (lambda lines: round(_mean(lines)), "A mean is no whole number; do not round it."),
    (lambda lines: _mean([line.strip() for line in lines]), _AS_IT_STANDS),
    (lambda lines: _mean([line.lstrip() for line in lines]), _AS_IT_STANDS),
    (lambda lines: _mean(lines) + 1, "A line comes without its end."),
]
