"""Exercise 06: an inverted index, means in few bytes, and a sample of lines."""

import math
import re
from collections import defaultdict
from random import SystemRandom

from distlab.checks.kit import PUBLISHED, Contract, Hint, Wrong, check
from distlab.checks.kit.jobs import mapped, on_jobs
from distlab.checks.kit.tables import by_key
from distlab.faults import KillWorker

random, HEADS = SystemRandom(), ("key", "expected", "yours")
WORDS = ["self.x", "def", "x2=_y", "Größe(x)", "Self", "return", "be:", "#", "42"]
NAMES = {
    "one file": ["main.py"],
    "three files": ["mail.py", "mail/text.py", "main.py"],  # as paths in another order
    "two folders": ["one/__init__.py", "two/__init__.py", "two/a.py"],
    "some files are empty": ["b/c.py", "f.py"],
}
LENGTHS = {"forty files": [*[100] * 39, 3], "one long file": [3000, 2, 0]}
WHOLE, SPLIT, SMALL, PAIR_BYTES = 2**20, 25_000, 6000, 60
ALLOWED = 4 / 3  # bound of longest-first, relative to the optimum (Graham, 1969)
UNLIKELY = 6 * 12**-0.5  # six deviations of a number drawn evenly from 0 to 1
CONTRACT = Contract(
    key={
        "as it stands": "a word of the index is as it stands in the line",
        "lower case": "a word of the index is in lower case",
    },
    names={
        "rising": "the names of its files are in rising order",
        "falling": "the names of its files are in falling order",
    },
    line={
        "whole": "in steps 2 and 3 a line is taken whole, leading spaces included",
        "stripped": "in steps 2 and 3 a line is taken without spaces around it",
    },
    blank={
        "counted": "blank lines have a mean, too",
        "left out": "blank lines have no mean",
    },
)
ORDERS = {"place": lambda line: 0, "alphabet": str, "length": len}


@check("{}")
def inverted_index(functions, case, contract=PUBLISHED):
    """Check that each word has the sorted list of its files, for any input splits."""
    files = {name: _text(12, WORDS) for name in NAMES[case]}
    if case == "some files are empty":
        files |= {"a.py": "", "d.py": "\n\n  \n", "e.py": "self.x"}
        files["f.py"] = files["f.py"].replace("\n", "\r\n")
    lines = [(name, line) for _, name, line in mapped(files, WHOLE)]
    pairs = {(w, name) for name, line in lines for w in re.findall(r"[^\W\d]\w*", line)}
    if contract.get("key") == "lower case":
        pairs = {(word.lower(), name) for word, name in pairs}
    order = {"reverse": contract.get("names") == "falling"}
    right = {w: sorted((n for v, n in pairs if v == w), **order) for w, _ in pairs}
    few = {"workers": 3, "split_bytes": max(12, sum(map(len, files.values())) // 40)}
    plans = {"on 1 worker": {"workers": 1}, "on 3 workers, in small splits": few}
    for plan, job in on_jobs(functions, files, plans):
        _compare(plan, right, job, index=True, again="splits" in plan)


@check("files of {} lines, {} reducers")
def mean_lengths(functions, counts, reducers, contract=PUBLISHED):
    """Check means with and without a combiner, the bytes sent, and even loads."""
    names = [f"{'abc'[number % 3]}/file{number}.py" for number in range(len(counts))]
    files = {n: _text(count, WORDS) for n, count in zip(names, counts, strict=True)}
    sizes, lengths = {n: len(t.encode()) for n, t in files.items()}, defaultdict(list)
    split, needed = max(3000, sum(sizes.values()) // 3), set()
    for task, name, line in mapped(files, split):
        key = name, (line.split() or [""])[0]
        if contract.get("blank") == "left out" and not line.strip():
            continue
        lengths[key].append(len(_taken(line, contract)))
        needed.add((task, key))
    right = {key: sum(own) / len(own) for key, own in lengths.items()}
    own = {"combiner": True, "in_groups": True, "split_bytes": split}
    own |= {"sizes": sizes, "reducers": reducers}
    plans = {"without a combiner": {"workers": 1}, "with all your functions": own}
    for plan, job in on_jobs(functions, files, plans):
        if job["there"]:
            _check_homes(job, sizes)
        _compare(plan, right, job, combined=bool(job["there"]), mean=True)
    pairs, sent = job["pairs"], job["bytes"]
    if pairs > len(needed) or sent > pairs * PAIR_BYTES:
        found = f"The means are right. {pairs:,} pairs were sent, in {sent:,} bytes.\n"
        found += f"{len(needed):,} pairs of {PAIR_BYTES} bytes or less are enough."
        raise Wrong(found, combined=True)


def _check_homes(job, sizes):
    """Raise unless a file's keys are in one part in any Python, and loads are even."""
    homes, loads = defaultdict(set), [0] * len(job["parts"])
    for number, part in enumerate(job["parts"]):
        for (name, word), _ in part:
            homes[name] |= {number, job["there"][name, word]}
    for name, several in homes.items():
        if len(several) > 1:
            found = f"Keys of {name} go to the reducers {', '.join(map(str, several))}"
            raise Wrong(f"{found}, in one Python or in two.", moved=True)
        loads[min(several)] += sizes[name]
    most = ALLOWED * max(sum(loads) / len(loads), *sizes.values())
    if max(loads) > most:
        found = f"Bytes of each reducer's files: expected at most {most:,.0f}, yours\n"
        raise Wrong(found + ", ".join(f"{load:,}" for load in loads), uneven=True)


@check("{} lines of each, {}")
def sampled_lines(functions, keep, case, contract=PUBLISHED):
    """Check a fair sample of each file's lines, the same for any splits and faults."""
    words = ["".join(random.choices("abcdefghij", k=k % 7 + 2)) for k in range(500)]
    files = {f"part{n:02}.txt": _text(c, words) for n, c in enumerate(LENGTHS[case])}
    files = {name: f"{t}\n{t[:200]}" for name, t in files.items()}  # some lines twice
    *_, late = ((n, x) for t, n, x in mapped(files, SPLIT) if t == 0 and x.strip())
    own = {"combiner": True, "split_bytes": SPLIT}
    cut = own | {"workers": 3, "split_bytes": SMALL, "in_groups": True}
    fails = own | {"workers": 1, "fails": late, "shows": "map .*attempt 2"}
    killed = own | {"faults": KillWorker(1, 1), "shows": "map .*lost"}
    plans = {
        "without your combiner": {"workers": 1, "elsewhere": files},
        "with your combiner, in small splits": cut,
        "with a map task that failed half-way": fails,
        "with a worker killed in a map task": killed,
    }
    most = keep * len({(task, name) for task, name, _ in mapped(files, SMALL)})
    first = {}
    for plan, job in on_jobs(functions, files, plans):
        if not first:
            first = dict(job["parts"][0] + job["parts"][1])
            _check_drawn(files, first, keep, contract)
            other = {"parts": [job["there"].items()]}
            _compare("in a Python with other hashes", first, other, chance=True)
        small = "splits" in plan
        _compare(plan, first, job, left_out=small, again=not small)
        if small and job["pairs"] > most:
            found = f"The lines are right. {job['pairs']:,} pairs were sent, where "
            raise Wrong(f"{found}{most:,} are enough.", left_out=True)


def _taken(line, contract):
    return line.strip() if contract.get("line") == "stripped" else line


def _check_drawn(files, drawn, keep, contract):
    """Raise unless `keep` different lines of each file are drawn at random."""
    own = {name: text.split("\n") for name, text in files.items()}
    own = {n: [_taken(x, contract) for x in own[n] if x.strip()] for n in own}
    own = {name: [*dict.fromkeys(lines)] for name, lines in own.items()}
    for name in own | drawn:
        lines, yours = own.get(name, []), drawn.get(name, [])
        right = min(keep, len(lines))
        known = type(yours) is list and all(line in lines for line in yours)
        if not known or not len({*yours}) == len(yours) == right:
            expected = {name: [f"{right} of its lines"]}
            raise Wrong(by_key(HEADS, expected, {name: yours}), drawn=True)
    for order, key in ORDERS.items():
        ranks = []
        for name, lines in drawn.items():
            places = {line: n for n, line in enumerate(sorted(own[name], key=key))}
            ranks += [(places[line] + 0.5) / len(places) for line in lines]
        mean = sum(ranks) / len(ranks)
        if abs(mean - 0.5) > UNLIKELY / len(ranks) ** 0.5:
            found = f"By {order}, the mean rank of the lines drawn is {mean:.2f},\n"
            raise Wrong(f"{found}from 0 for the first to 1 for the last.", chance=True)


def _text(count, words):
    """Return random lines, 3 of 10 blank; much the same bytes for the same `count`."""
    chosen = [random.choices(words, k=n % 9 + 1) * (n % 10 < 7) for n in range(count)]
    lines = ["    " * (n % 4) + " ".join(own) for n, own in enumerate(chosen)]
    random.shuffle(lines)
    return "\n".join(lines)


def _compare(plan, right, job, **facts):
    """Raise if a job did not give each key the right value, once."""
    yours = {}
    for key, value in (pair for part in job["parts"] for pair in part):
        both = type(value) in (int, float) and type(right.get(key)) is float
        value = right[key] if both and math.isclose(value, right[key]) else value
        yours[key] = [yours[key], value] if key in yours else value
    if table := by_key(HEADS, right, yours):
        raise Wrong(f"A job {plan}:\n{table}", **facts)


# fmt: off
HINTS = [
    Hint(lambda f: f.get("moved") or "partitioner" in f["story"], [
        "All keys of a file go to one reducer, numbered from 0 on, whichever Python "
        "asks. hash() of a string is another number in every new Python.",
        "Look at what your partitioner computes from. A dict from name to number, "
        "filled from `sizes` in a fixed order, is the same everywhere; a hash, a "
        "set's order or a counter is not."]),
    Hint(lambda f: f["combined"] if "combined" in f
         else f["combiner"] and "write this step" not in f["story"], [
        "What the combiner returns takes the place of values, and it is given its own "
        "results, too. So it returns a value of the same kind, short and without the "
        "key, that stands for several lines. A mean of means is not the mean.",
        "One value stands for four lines of 10 characters, another for one of 20. "
        "Their mean is 12. Which two numbers does the reducer need of each?"]),
    Hint(lambda f: f.get("again") or f["left"], [
        "A task may run twice, on any worker. What a function remembers from one call "
        "to the next stays in its own process, where no other worker sees it; a file "
        "that it writes is then there twice.",
        "Look for a name that is made outside of your functions and filled inside, or "
        "a default argument that is a list. All that has to meet is sent as pairs."]),
    Hint(lambda f: f["index"], [
        "The key is a word as words(line) gives it. Its value is the sorted list of "
        "the names that the mapper was given; in the list each name stands once.",
        "Take the example with a.py and b.py by hand: which pairs leave the mapper, "
        "and which names arrive for x? Look at what the reducer does with a name "
        "that comes twice."]),
    Hint(lambda f: f["mean"], [
        "The key is (name, first_word(line)), for blank lines, too. Add up the "
        "lengths of the lines as they stand, count them, and divide in the end.",
        "Compare one row of the table with the example in the text. Is a line "
        "measured with its leading spaces? Where do you divide: once per key, in the "
        "reducer alone?"]),
    Hint(lambda f: f["uneven"], [
        "Large files meet in one reducer. The sizes are known before the job begins: "
        "which file do you place first, and where?",
        "Files of 7, 6, 3 and 2 for two reducers: place each with the reducer that has "
        "least so far. Then do it in the order 2, 3, 6, 7, and compare the loads."]),
    Hint(lambda f: f["drawn"], [
        "The value of a file is a list of KEEP of its different lines, or of all of "
        "them if there are fewer: whole, as they stand, none of them blank.",
        "Compare the lines of the table with the file. Does the mapper change the "
        "line, by strip() for example? Does the reducer return a list of lines, "
        "without the numbers that it sorts by?"]),
    Hint(lambda f: f["chance"], [
        "Whether a line is drawn follows from the line itself: the same in every "
        "Python, but nothing to do with where it stands or how it looks.",
        "You need a function from a line to a number that looks random, also for two "
        "similar lines, and is the same everywhere. Which import has one?"]),
    Hint(lambda f: f["left_out"], [
        "What the combiner leaves out no reducer gets back. Five are wanted, by the "
        "smallest number: can the sixth smallest of a split be among them?",
        "Look at the order of two steps in the combiner: what removes equal lines, "
        "and what cuts the list to KEEP? It must keep the smallest numbers, by the "
        "rule by which the reducer chooses."]),
]
