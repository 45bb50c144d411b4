"""An index that is right by luck fails, in a case that the exercise shows if it can."""

from itertools import groupby

import pytest
from right_index import mapper, reducer, words

from distlab.grading import InvertedIndex


@pytest.mark.parametrize(
    "unsorted",
    [
        lambda word, names: list(dict.fromkeys(names)),
        lambda word, names: [name for name, _ in groupby(names)],
    ],
)
def test_an_order_that_only_the_inputs_had_fails_in_a_case_that_is_shown(unsorted):
    verdict = InvertedIndex([mapper, unsorted], "three files").judge()
    assert verdict.outcome == "fail"
    assert "Sort the names" in verdict.hint or "stands once" in verdict.hint


def test_what_a_mapper_has_seen_before_is_missed_when_a_task_is_tried_again():
    seen = set()

    def new_only(name, line):
        for word in words(line):
            if (word, name) not in seen:
                seen.add((word, name))
                yield word, name

    verdict = InvertedIndex([new_only, reducer], "one file").judge()
    assert verdict.outcome == "fail"
    assert "The same task ran twice in one process" in verdict.hint


def test_an_index_in_a_global_is_right_on_one_worker_only():
    index = {}

    def remember(name, line):
        for word in words(line):
            index.setdefault(word, set()).add(name)
            yield word, 1

    def recall(word, ones):
        return sorted(index.get(word, ()))

    verdict = InvertedIndex([remember, recall], "twenty files").judge()
    assert verdict.outcome == "fail"
    assert "other workers know nothing of it" in verdict.hint
