"""Wrong answers to the inverted index each meet the hint that fits, and none passes.

The exercise's own variants are graded as notebooks; here are more, and quicker.
"""

import os
import sys
import threading
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from right_index import mapper, reducer, words

from distlab.grading import InvertedIndex, grade
from distlab.grading.jobs.texts import index_of, source_files

CASE = "two folders"


def returned(make):
    """Return a reducer that makes something of the right list."""
    return lambda word, names: make(reducer(word, names))


def pairs(make):
    """Return a mapper that makes something of each word and name."""
    return lambda name, line: [make(word, name) for word in words(line)]


# ---- mappers --------------------------------------------------------------------


def only_the_line(line):
    return [(word, 1) for word in words(line)]


def nothing(name, line):
    return None


def one_pair(name, line):
    return "self", name


def no_last_word(name, line):
    return [(word, name) for word in words(line)[:-1]]


def by_blanks(name, line):
    return [(word, name) for word in line.split()]


MAPPERS = {
    "one argument": (only_the_line, "is given the file's name before the line"),
    "returns nothing": (nothing, "takes each as a pair"),
    "returns one pair": (one_pair, "takes each as a pair"),
    "gives no pairs": (lambda name, line: [], "The mapper gave no pairs"),
    "forgets the last word": (no_last_word, "the last one of the line"),
    "splits at blanks": (by_blanks, "without what stands around them"),
    "swaps": (pairs(lambda word, name: (name, word)), "keys are names of files"),
    "lowers": (pairs(lambda word, name: (word.lower(), name)), "are two words"),
    "last part": (pairs(lambda w, n: (w, n.split("/")[-1])), "as the mapper is given"),
    "pair as key": (pairs(lambda w, n: ((w, n), 1)), "the word alone"),
    "list as key": (pairs(lambda w, n: ([w], n)), "Take strings, numbers, or tuples"),
    "path as key": (pairs(lambda w, n: (Path(w), n)), "Take strings, numbers"),
}

# ---- reducers -------------------------------------------------------------------


def exhausted(word, names):
    found = len(list(names)) > 0
    return sorted(set(names)) if found else None


def one_by_one(word, names):
    yield from reducer(word, names)


def growing(word, names, known=[]):  # noqa: B006
    known += names
    return sorted(set(known))


def sorts_in_place(word, names):
    return list(set(names)).sort()


def sorts_the_iterator(word, names):
    names.sort()
    return names


def counts(word, names):
    return len(set(names))


def backwards(word, names):
    return sorted(set(names), reverse=True)


def kept_apart(word, names):
    return dict.fromkeys(sorted(names))


def in_a_string(word, names):
    return " ".join(reducer(word, names))


def always_equal(text):
    """Return a string that looks like whatever it is compared with."""

    class AlwaysEqual(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return True

    return AlwaysEqual(text)


def odd_list(names):
    """Return a list that is equal to any other."""

    class OddList(list):
        def __eq__(self, other):
            return True

    return OddList(names)


def writes(word, names):
    with open("index.txt", "a") as file:
        print(word, file=file)
    return reducer(word, names)


def forks(word, names):
    if os.fork() == 0:
        os._exit(0)
    return reducer(word, names)


def leaves(word, names):
    os._exit(3)


def borrows(word, names):
    from distlab.grading.jobs import texts

    return texts


def unwritten(word, names):
    raise NotImplementedError("write this step")


def raises(word, names):
    raise KeyError(word)


REDUCERS = {
    "every mention": (lambda word, names: sorted(names), "each name stands once"),
    "a set": (lambda word, names: set(names), "no order of its own"),
    "a tuple": (returned(tuple), "a list of names"),
    "a dict": (kept_apart, "keeps names apart"),
    "a string": (in_a_string, "return it whole"),
    "sorts the iterator": (sorts_the_iterator, "can be gone through once"),
    "a number": (counts, "in which files, and not in how many"),
    "nothing": (sorts_in_place, "return its list in every case"),
    "backwards": (backwards, "Sort the names"),
    "one by one": (one_by_one, "Return one list"),
    "gone through twice": (exhausted, "can be gone through once"),
    "grows": (growing, "from one key to the next"),
    "nested": (returned(lambda names: [names]), "a list of names"),
    "odd names": (returned(lambda names: [*map(always_equal, names)]), "list of names"),
    "equal to all": (returned(lambda names: mock.ANY), "a list of names"),
    "odd list": (returned(odd_list), "a list of names"),
    "first only": (returned(lambda names: names[:1]), "A pair was dropped"),
    "writes": (writes, "A task may run twice"),
    "forks": (forks, "A task may run twice"),
    "leaves": (leaves, "ends its own process"),
    "borrows": (borrows, "are locked"),
    "unwritten": (unwritten, "Nothing of your own is written yet"),
    "raises": (raises, "names the task, the record and the line"),
}


@pytest.mark.parametrize("wrong", MAPPERS)
def test_a_wrong_mapper_meets_its_hint(wrong):
    function, hint = MAPPERS[wrong]
    verdict = InvertedIndex([function, reducer], CASE).judge()
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


@pytest.mark.parametrize("wrong", REDUCERS)
def test_a_wrong_reducer_meets_its_hint(wrong):
    function, hint = REDUCERS[wrong]
    verdict = InvertedIndex([mapper, function], CASE).judge()
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


@pytest.mark.parametrize("case", ["one file", "some files are empty", "twenty files"])
def test_a_right_index_passes(case):
    assert InvertedIndex([mapper, reducer], case).judge().outcome == "pass"


def test_a_difference_is_shown_beside_what_is_expected():
    verdict = InvertedIndex([mapper, lambda word, names: sorted(names)], CASE).judge()
    head, row = verdict.found.splitlines()[1:3]
    assert head.split() == ["word", "expected", "yours"]
    assert row.endswith("← first difference")
    assert "is there" in verdict.found.splitlines()[-1]


def test_what_never_ends_is_ended(monkeypatch):
    def forever(word, names):
        while True:
            pass

    monkeypatch.setattr(InvertedIndex, "_timeout_s", 3)
    verdict = InvertedIndex([mapper, forever], CASE).judge()
    assert verdict.outcome == "fail"
    assert "a loop that never ends" in verdict.hint


def test_what_cannot_travel_is_named():
    lock = threading.Lock()

    def locked(word, names):
        with lock:
            return reducer(word, names)

    verdict = InvertedIndex([mapper, locked], CASE).judge()
    assert verdict.outcome == "fail"
    assert "`lock`" in verdict.found


def test_no_answer_can_be_read_from_the_frames_around():
    expected, seen = index_of(source_files(CASE)), []

    class Spy:
        """Looks around when it is packed, which happens in the notebook's process."""

        def __call__(self, word, names):
            return reducer(word, names)

        def __reduce__(self):
            frame = sys._getframe()
            while frame and frame.f_code.co_name != "judge":
                frame = frame.f_back
            seen.extend([*frame.f_locals.values(), vars(frame.f_locals["self"])])
            return partial, (reducer,)

    verdict = InvertedIndex([mapper, Spy()], CASE).judge()
    assert verdict.outcome == "pass", str(verdict)
    assert seen and not any(thing == expected for thing in seen)


def test_a_worker_that_changes_its_watch_gets_no_verdict_that_counts():
    class Any:
        def __eq__(self, other):
            return True

    def disarms(word, names):
        from distlab.dataflow.trial import learners

        learners.plain = lambda value: value
        return Any()

    assert grade(4, [InvertedIndex([mapper, disarms], CASE)]) == 0
