"""Samples that are not the same in every run each meet the hint that fits.

No verdict is a pass unless every fault of the plan has been seen to happen.
"""

import os
import random
import time
import zlib
from itertools import count

import pytest

from distlab.grading import SampledLines, grade
from distlab.grading.jobs import sampled_lines
from distlab.grading.jobs.sample_runs import Run

KEEP = 5


def mapper(name, line):
    if line.strip():
        yield name, (zlib.crc32(line.encode()), line)


def combiner(name, values):
    yield from sorted(set(values))[:KEEP]


def reducer(name, values):
    return [line for _, line in sorted(set(values))[:KEEP]]


def judged(**wrong):
    right = {"mapper": mapper, "reducer": reducer, "combiner": combiner}
    return SampledLines(list((right | wrong).values()), KEEP, "forty files").judge()


def by(number):
    """Return a mapper that draws this number for a line."""
    return lambda name, line: [(name, (number(line), line))] if line.strip() else []


def once(values):
    """Return line -> the smallest number drawn for it."""
    found = {}
    for number, line in values:
        found[line] = min(number, found.get(line, number))
    return found


def fewest(name, values):
    found = once(values)
    for line in sorted(found, key=found.get)[:KEEP]:
        yield found[line], line


def fewest_lines(name, values):
    return [line for _, line in fewest(name, values)]


ONCE = {"combiner": fewest, "reducer": fewest_lines}


def plain(name, line):
    if line.strip():
        yield name, line


def shuffled(name, values):
    lines = sorted(set(values))
    return random.sample(lines, min(KEEP, len(lines)))


def one_generator():
    draws = random.Random(0)
    return by(lambda line: draws.random())


def counted():
    lines = count()
    return by(lambda line: (zlib.crc32(line.encode()), next(lines)))


def by_place():
    places = {}

    def numbered(name, line):
        places[name] = places.get(name, 0) + 1
        if line.strip():
            yield name, (zlib.crc32(f"{name}{places[name]}".encode()), line)

    return numbered


def remembers():
    seen = set()

    def new_only(name, line):
        if (name, line) not in seen:
            seen.add((name, line))
            yield from mapper(name, line)

    return new_only


def a_sixth(name, values):
    return [line for number, line in set(values) if number % 40 == 0]


def every(name, values):
    yield from set(values)


def any_five(name, values):
    yield from list(dict.fromkeys(values))[:KEEP]


def seeded(name, values):
    lines = sorted(set(values))
    return random.Random(0).sample(lines, min(KEEP, len(lines)))


def same_seed(line):
    random.seed(0)
    return random.random()


def blanks_too(name, line):
    yield name, (zlib.crc32(line.encode()), line)


def long_lines_only(name, line):
    if len(line) > 10:
        yield from mapper(name, line)


def two_passes(name, values):
    if list(values):
        yield from combiner(name, values)


def with_the_name(name, values):
    for value in combiner(name, values):
        yield name, value


def lines_twice(name, values):
    return [line for _, line in sorted(values)[:KEEP]]


WRONG = {
    "random": (
        {"mapper": plain, "reducer": shuffled, "combiner": every},
        "Something is different each time",
    ),
    "random numbers": (
        {"mapper": by(lambda line: random.random()), **ONCE},
        "Something is different each time",
    ),
    "the time": (
        {"mapper": by(lambda line: time.perf_counter_ns() * 7919 % 1009), **ONCE},
        "Something is different each time",
    ),
    "the process": (
        {"mapper": by(lambda line: zlib.crc32(f"{os.getpid()}{line}".encode()))},
        "Something is different each time",
    ),
    "hash": ({"mapper": by(hash)}, "zlib.crc32 is the same everywhere"),
    "a set's order": (
        {
            "mapper": plain,
            "reducer": lambda name, values: list(set(values))[:KEEP],
            "combiner": every,
        },
        "zlib.crc32 is the same everywhere",
    ),
    "one generator": ({"mapper": one_generator(), **ONCE}, "nothing that came before"),
    "number of the line": (
        {"mapper": by_place(), **ONCE},
        "nothing that came before",
    ),
    "remembers": ({"mapper": remembers()}, "What a function remembered from the first"),
    "first lines": (
        {
            "mapper": plain,
            "reducer": lambda name, values: list(dict.fromkeys(values))[:KEEP],
            "combiner": any_five,
        },
        "nothing to do with where it stands",
    ),
    "alphabet": ({"mapper": by(str)}, "nothing to do with where it stands"),
    "length": ({"mapper": by(len)}, "nothing to do with where it stands"),
    **{
        f"by {what}": ({"mapper": by(number)}, "nothing to do with where it stands")
        for what, number in {
            "spelling from the end": lambda line: line[::-1],
            "the last letter": lambda line: line[-1:],
            "the second half": lambda line: line[len(line) // 2 :],
            "a sum of letters": lambda line: zlib.adler32(line.encode()),
            "few numbers": lambda line: zlib.crc32(line.encode()) % 10,
        }.items()
    },
    "blank lines": ({"mapper": blanks_too}, "Blank lines are left out"),
    "two numbers for a line": (
        {"mapper": counted()},
        "Is it given one number each time",
    ),
    "the combiner's second pass": (
        {"combiner": two_passes},
        "can be gone through once",
    ),
    "a key from the combiner": ({"combiner": with_the_name}, "without the key"),
    "the same seed": ({"mapper": by(same_seed)}, "nothing to do with where it stands"),
    "some combined": ({"combiner": any_five}, "What the combiner leaves out"),
    "a seed in the combiner": (
        {
            "mapper": plain,
            "reducer": seeded,
            "combiner": lambda name, values: (yield from seeded(name, values)),
        },
        "What the combiner leaves out",
    ),
    "combiner keeps all": ({"combiner": every}, "can the combiner leave out"),
    "a share": ({"reducer": a_sixth}, "A share of the lines"),
    "too many": (
        {"reducer": lambda name, values: [line for _, line in sorted(set(values))]},
        "no more lines than are asked for",
    ),
    "one twice": ({"reducer": lines_twice}, "counts once"),
    "no lines": ({"reducer": lambda n, values: list(values)}, "a list of its lines"),
    "a set": ({"reducer": lambda n, v: set(reducer(n, v))}, "has another order"),
    "stripped": (
        {"mapper": by(lambda line: 0), "reducer": lambda n, v: ["no line"] * KEEP},
        "whole lines as they stand",
    ),
    "one by one": (
        {"reducer": lambda n, v: (yield from reducer(n, v))},
        "gives a key several values",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_sample_meets_its_hint(wrong):
    functions, hint = WRONG[wrong]
    verdict = judged(**functions)
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


def test_a_line_left_out_is_missed_where_a_file_has_few():
    verdict = SampledLines(
        [long_lines_only, reducer, combiner], KEEP, "few lines"
    ).judge()
    assert verdict.outcome == "fail"
    assert "all different lines if the file has fewer" in verdict.hint


@pytest.mark.parametrize("case", ["forty files", "one long file"])
def test_a_sample_by_a_number_of_the_line_passes(case):
    assert (
        SampledLines([mapper, reducer, combiner], KEEP, case).judge().outcome == "pass"
    )


@pytest.mark.parametrize("name", ["again", "map", "reduce", "backup"])
def test_a_fault_that_did_not_happen_gives_no_verdict(name, monkeypatch):
    runs_on = sampled_lines.runs_on

    def never_hit(files):
        runs = runs_on(files)
        clean = runs["combiner"].plan
        return runs | {name: Run(clean, runs[name].what, runs[name].hit)}

    monkeypatch.setattr(sampled_lines, "runs_on", never_hit)
    verdict = judged()
    assert verdict.outcome == "inconclusive"
    assert "has not happened" in verdict.found
    assert grade(3, [Verdicts(verdict)]) == 0


class Verdicts:
    """A check that has come to a verdict already."""

    title = "a verdict"

    def __init__(self, verdict):
        self.judge = lambda: verdict
