"""From a difference between two indexes to what it is in words, and a first nudge."""

from collections import Counter
from pathlib import PurePath

from distlab.dataflow.trial import Odd

__all__ = ["hint_for_list", "hint_for_words"]


def hint_for_words(
    word: str, expected: dict, yours: dict, files: dict
) -> tuple[str, str]:
    """Return (what is wrong, nudge) for a word that only one of the two has."""
    if word in expected:
        told = f"{word!r} is missing, which is in {' and '.join(expected[word][:3])}."
        if set(yours) <= set(files):
            return told, _SWAPPED
        if word.lower() != word and word.lower() in yours:
            return told, _AS_IT_STANDS
        return told, _MISSING
    told = f"{word!r} is no word of these files."
    if word in files:
        return told, _SWAPPED
    if any(known.lower() == word for known in expected):
        return told, _AS_IT_STANDS
    return told, _NO_WORD


def hint_for_list(word: str, right: list, found: object, files: dict):
    """Return (what is wrong, nudge) for a word whose list of names is another."""
    if type(found) is not list:
        kind = found.kind if isinstance(found, Odd) else type(found).__name__
        told = f"The value of {word!r} is a {kind}, and no list."
        return told, _KINDS.get(kind, _NO_LIST)
    if any(type(name) is not str for name in found):
        return f"In the list of {word!r} there is something else than names.", _NO_LIST
    missing = list((Counter(right) - Counter(found)).elements())
    more = list((Counter(found) - Counter(right)).elements())
    if not missing and not more:
        return f"The names of {word!r} are right, and not in order.", _ORDER
    if not found:
        return f"The list of {word!r} is empty.", _EMPTY
    if more and more[0] in right:
        count = found.count(more[0])
        times = "twice" if count == 2 else f"{count} times"
        return f"{word!r}: {more[0]} is there {times}.", _TWICE
    if more and more[0] not in files:
        told = f"{word!r}: {more[0]} is no name of these files."
        ends = {PurePath(name).name for name in files} | {
            PurePath(name).stem for name in files
        }
        return told, _WHOLE_NAME if more[0] in ends else _OTHER_NAME
    if more:
        return f"{word!r}: it is not in {more[0]}.", _FOREIGN
    return f"{word!r}: {missing[0]} is missing.", _LOST


_SWAPPED = (
    "These keys are names of files. The key is what the index is asked for; what it "
    "answers is the value."
)
_AS_IT_STANDS = "Take each word as it stands in the line: Self and self are two words."
_MISSING = "Does every word of a line get its pair, the last one of the line, too?"
_NO_WORD = "words(line) gives the words of a line, without what stands around them."
_NO_LIST = "The value of a word is a list of names, as sorted(...) returns it."
_KINDS = {
    "str": "The value is a string. It is a list, of one name if one file only has the "
    "word; return it whole, and neither join its names nor yield them one by one.",
    "set": "A set has no order of its own. sorted(...) makes a list of it, in order.",
    "dict": "A dict keeps names apart, but is no list. sorted(...) makes one of it.",
    "NoneType": "The reducer returned nothing for this word. Does it return its list "
    "in every case? The method sort of a list returns None.",
    "int": "The value is a number. An index says in which files, and not in how many.",
}
_ORDER = (
    "The order of a reducer's values is that of the splits, which is no order to rely "
    "on. Sort the names."
)
_EMPTY = (
    "The reducer's values come as an iterator, which can be gone through once. What "
    "has looked at them first has taken them all."
)
_TWICE = (
    "The reducer is given a name once for each time that the word occurs. In the list "
    "each name stands once."
)
_WHOLE_NAME = (
    "Take the file's name as the mapper is given it: two folders may have files of the "
    "same name."
)
_OTHER_NAME = "The mapper is given the file's name. Is that the value of each pair?"
_FOREIGN = (
    "That file does not have the word. Does a list go on growing from one key to the "
    "next?"
)
_LOST = (
    "A pair was dropped on the way. Does every word of a line get one, the last one of "
    "the line, too, or does a function leave out what it has seen before?"
)
