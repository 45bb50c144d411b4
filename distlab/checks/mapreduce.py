"""Exercise 06: an inverted index, means in few bytes, and a sample of lines."""

import math
import re
from collections import defaultdict
from random import SystemRandom

from distlab.checks.kit import Hint, Wrong, check
from distlab.checks.kit.jobs import mapped, on_jobs
from distlab.checks.kit.tables import by_key
from distlab.faults import KillWorker

random, LETTERS = SystemRandom(), "abcdefghijklmnop"
WORDS = ["self", "def", "return", "x", "x2", "_y", "Größe", "Self", "import", "be"]
NAMES = {
    "one file": ["main.py"],
    "three files": ["mail.py", "mail/text.py", "main.py"],  # as paths in another order
    "two folders": ["one/__init__.py", "two/__init__.py", "two/a.py"],
    "some files are empty": ["b/c.py", "f.py"],
}
LENGTHS = {"forty files": [*[100] * 39, 3], "one long file": [3000, 2, 0]}
WHOLE, SPLIT, PAIR_BYTES = 2**20, 25_000, 60
BOTH = "expected", "yours"
ALLOWED = 4 / 3  # what longest-first may need, against the best (Graham, 1969)
UNLIKELY = 6 * 12**-0.5  # six deviations of a number drawn evenly from 0 to 1
ORDERS = {"place": lambda line: 0, "alphabet": str, "length": len}
ORDERS["spelling from the end"] = lambda line: line[::-1]
ORDERS["second half"] = lambda line: line[len(line) // 2 :]


@check("{}")
def inverted_index(functions, case):
    """Each word has the sorted list of its files, however the input is cut."""
    between = ["(", ", ", ".", " = ", "  # ", " 42 "]
    files, right = {name: _text(12, WORDS, between) for name in NAMES[case]}, {}
    if case == "some files are empty":
        files |= {"a.py": "", "d.py": "\n\n  \n", "e.py": "self.x"}
        files["f.py"] = files["f.py"].replace("\n", "\r\n")
    for _, name, line in mapped(files, WHOLE):
        for word in re.findall(r"[^\W\d]\w*", line):
            right[word] = sorted({*right.get(word, ()), name})
    few_bytes = max(12, sum(map(len, files.values())) // 40)
    plans = {
        "on 1 worker": {"workers": 1},
        "on 3 workers, in small splits": {"workers": 3, "split_bytes": few_bytes},
        "with a task that failed half-way": _failing(files, WHOLE),
    }
    for plan, job in on_jobs(functions, files, plans):
        facts = {"index": True, "again": plan != "on 1 worker"}
        _compare(plan, ("word", *BOTH), right, job, **facts)


@check("files of {} lines, {} reducers")
def mean_lengths(functions, counts, reducers):
    """Means, with or without a combiner; few bytes travel, in even loads."""
    names = [f"{'abc'[number % 3]}/file{number}.py" for number in range(len(counts))]
    files = {n: _text(count, WORDS) for n, count in zip(names, counts, strict=True)}
    sizes, right = {n: len(t.encode()) for n, t in files.items()}, defaultdict(list)
    split, needed = max(3000, sum(sizes.values()) // 3), set()
    for task, name, line in mapped(files, split):
        key = name, (line.split() or [""])[0]
        right[key].append(len(line))
        needed.add((task, key))
    right = {key: sum(lengths) / len(lengths) for key, lengths in right.items()}
    own = {"combiner": True}
    few = own | {"in_groups": True, "split_bytes": 3000}
    last = own | {"sizes": sizes, "reducers": reducers, "split_bytes": split}
    plans = {
        "without a combiner": {"workers": 1},
        "with your combiner, on a few values and then on what it made of these": few,
        "with your combiner and your partitioner": last,
    }
    for plan, job in on_jobs(functions, files, plans):
        fact = "mean" if "without" in plan else "combined"
        _compare(plan, ("file and first word", *BOTH), right, job, **{fact: True})
    pairs, sent = job["pairs"], job["bytes"]
    if pairs > len(needed) or sent > pairs * PAIR_BYTES:
        found = f"The means are right. {pairs:,} pairs were sent, in {sent:,} bytes.\n"
        found += f"{len(needed):,} pairs of {PAIR_BYTES} bytes or less are enough."
        raise Wrong(found, combined=True)
    _check_homes(job, sizes, reducers)


def _check_homes(job, sizes, reducers):
    """Raise unless a file's keys are in one part, in any Python, and loads are even."""
    homes, loads = {}, [0] * reducers
    for number, part in enumerate(job["parts"]):
        for (name, word), _ in part:
            if (there := job["there"][name, word]) != number:
                found = f"In one Python {(name, word)} goes to reducer {number}, "
                raise Wrong(f"{found}in another to reducer {there}.", moved=True)
            home, first = homes.setdefault(name, (number, word))
            if home != number:
                found = f"{name}: {first!r} is in part {home}, {word!r} in {number}."
                raise Wrong(found, moved=True)
    for name, (home, _) in homes.items():
        loads[home] += sizes[name]
    least = max(sum(loads) / reducers, *sizes.values())
    if max(loads) > least * ALLOWED:
        lines = ["reducer  bytes of its files  files"]
        for number, load in enumerate(loads):
            own = " ".join(name for name in homes if homes[name][0] == number) or "-"
            mark = "  ← the most" * (load == max(loads))
            lines.append(f"{number:>7}  {load:>18,}  {own}{mark}")
        lines.append(f"Nobody can get below {least:,.0f}; 4/3 of that is the bound.")
        raise Wrong("\n".join(lines), uneven=True)


@check("{} lines of each, {}")
def sampled_lines(functions, keep, case):
    """A fair sample of each file's lines, the same whatever is cut or killed."""
    words = ["".join(random.choices(LETTERS, k=k % 7 + 2)) for k in range(500)]
    files = {f"part{n:02}.txt": _text(c, words) for n, c in enumerate(LENGTHS[case])}
    files = {name: f"{t}\n{t[:200]}" for name, t in files.items()}  # some lines twice
    maps, own = -(-sum(map(len, files.values())) // SPLIT), {"combiner": True}
    late = [KillWorker(0, maps + 1), KillWorker(1, maps + 1)]  # when all maps are done
    plans = {
        "without your combiner": {"workers": 1, "elsewhere": files},
        "with your combiner": own | {"workers": 1},
        "on 3 workers, in small splits": own
        | {"workers": 3, "split_bytes": 6000, "in_groups": True},
        "with a map task that failed half-way": own | _failing(files, SPLIT),
        "with a worker killed in a map task": own
        | {"faults": KillWorker(1, 1), "shows": "map .*lost"},
        "with a worker killed in a reduce task": own
        | {"faults": late, "reducers": maps + 1, "shows": "reduce .*lost"},
    }
    plans = {plan: {"split_bytes": SPLIT} | how for plan, how in plans.items()}
    most = keep * len({(task, name) for task, name, _ in mapped(files, SPLIT)})
    first, heads = {}, ("file", "one run", "the other")
    for plan, job in on_jobs(functions, files, plans):
        if not first:
            first = dict(job["parts"][0] + job["parts"][1])
            _check_drawn(files, first, keep)
            other = {"parts": [job["there"].items()]}
            _compare("in a Python with other hashes", heads, first, other, dice=True)
        fact = "left_out" if plan == "with your combiner" else "again"
        _compare(plan, heads, first, job, **{fact: True})
        if fact == "left_out" and job["pairs"] > most:
            found = f"The lines are right. {job['pairs']:,} pairs were sent, where "
            raise Wrong(f"{found}{most:,} are enough.", left_out=True)


def _check_drawn(files, drawn, keep):
    """Raise unless `keep` different lines of each file are drawn, by chance."""
    own = {name: dict.fromkeys(text.split("\n")) for name, text in files.items()}
    own = {name: [line for line in own[name] if line.strip()] for name in own}
    for name in {**{name: 0 for name in own if own[name]}, **drawn}:
        lines, yours = own.get(name, []), drawn.get(name)
        right = min(keep, len(lines))
        known = type(yours) is list and all(line in lines for line in yours)
        if not known or not len({*yours}) == len(yours) == right:
            expected = {name: [f"{right} of its lines"]}
            raise Wrong(by_key(("file", *BOTH), expected, {name: yours}), drawn=True)
    for order, key in ORDERS.items():
        ranks = []
        for name, lines in drawn.items():
            places = {line: n for n, line in enumerate(sorted(own[name], key=key))}
            ranks += [(places[line] + 0.5) / len(places) for line in lines]
        mean = sum(ranks) / len(ranks)
        if abs(mean - 0.5) > UNLIKELY / len(ranks) ** 0.5:
            found = f"By {order}, the mean rank of the lines drawn is {mean:.2f},\n"
            raise Wrong(f"{found}from 0 for the first to 1 for the last.", slanted=True)


def _text(count, words, between=(" ",)):
    """Return random lines, 3 of 10 blank; much the same bytes for the same `count`."""
    lines = []
    for number in range(count):
        line = "    " * (number % 4)
        if number % 10 < 7:
            line += random.choice(words)
            for _ in range(number % 9):
                line += random.choice(between) + random.choice(words)
        lines.append(line)
    random.shuffle(lines)
    return "\n".join(lines)


def _failing(files, split_bytes):
    """Return a plan in which the first map task fails at its last line, once."""
    lines = [line for _, *line in mapped(files, split_bytes)]
    first = [line for task, *line in mapped(files, split_bytes) if task == 0]
    late = next(x for x in reversed(first) if x[1].strip() and lines.count(x) == 1)
    return {"workers": 1, "fails": tuple(late), "shows": "map .*attempt 2"}


def _compare(plan, heads, right, job, **facts):
    """Raise if a job did not give each key the right value, once."""
    yours, parts = {}, {}
    for number, part in enumerate(job["parts"]):
        for key, value in part:
            if key in yours:
                found = f"A job {plan}:\nThe key {key!r} has two values"
                found += f", in the parts {parts[key]} and {number}."
                raise Wrong(found, **facts, moved=parts[key] != number)
            both = type(value) in (int, float) and type(right.get(key)) is float
            same = both and math.isclose(value, right[key])
            yours[key], parts[key] = right[key] if same else value, number
    if table := by_key(heads, right, yours):
        raise Wrong(f"A job {plan}:\n{table}", **facts)


_ONCE = r"has no len|(iterator|generator|chain|map)' object|division by zero|got 0\)"
_KINDS = TypeError, ValueError, AttributeError, IndexError

# fmt: off
HINTS = [
    Hint(lambda f: re.search(_ONCE, f["story"]), [
        "The values come as an iterator, which has no length and can be gone through "
        "once: whoever goes a second time finds nothing. list(values) keeps them.",
        "In the function that the message names, count the places that go over the "
        "values. The first of them uses them up, and the second sees an empty one."]),
    Hint(lambda f: f.get("moved") or "partitioner" in f["story"], [
        "All keys (name, first word) of a file go to one reducer, whichever Python "
        "asks. hash() of a string is another number in every Python that is started.",
        "Reducers are numbered from 0 on. Which part of the key may the number "
        "depend on? What your function counts, draws or reads from a set is not the "
        "same elsewhere."]),
    Hint(lambda f: f["combiner"] and isinstance(f["failure"].cause, _KINDS), [
        "What the combiner returns takes the place of the mapper's values, and it is "
        "given its own results, too: return the same kind of value, alone, without "
        "the key.",
        "Call your combiner by hand on two values of the mapper, and then on its own "
        "result together with a third one. At which line does the second call fail?"]),
    Hint(lambda f: f.get("again") or f["left"], [
        "A task may run twice, on any worker. What a function remembers from one "
        "call to the next stays in its own process, and other workers know nothing "
        "of it; what it writes is then there twice.",
        "Look for a name that is made outside of your functions and filled inside, a "
        "default argument that is a list, or a counter. All that has to meet travels "
        "as pairs.",
        "A mapper is given the line x as the first of its life, and another as the "
        "thousandth, or again, since its task had failed. Does it yield the same "
        "pair each time?"]),
    Hint(lambda f: f["index"], [
        "The key is a word as words(line) gives it. Its value is the sorted list of "
        "the names that the mapper was given; in the list each name stands once.",
        "A word stands three times in a file, so its pair was yielded three times. "
        "Which kind of collection has each thing once, and what makes a sorted list "
        "of it?"]),
    Hint(lambda f: f["mean"], [
        "The key is (name, first_word(line)), for blank lines, too. Add up the "
        "lengths of the lines as they stand, count them, and divide in the end, "
        "without rounding.",
        "Two lines of 10 and 11 characters: what is their mean, and what does your "
        "reducer give? What does your mapper do with a line of length zero?"]),
    Hint(lambda f: f["combined"], [
        "The combiner makes one short value of all that a map task has for a key, "
        "and it stands for several lines. A mean of means is not the mean: what has "
        "to travel besides?",
        "One value stands for four lines of 10 characters, another for one of 20. "
        "Their mean is 12. Which two numbers does the reducer need of each?"]),
    Hint(lambda f: f["uneven"], [
        "Large files meet in one reducer. The sizes are known before the job begins: "
        "which file do you place first, and where?",
        "Files of 7, 6, 3 and 2 for two reducers. Place them in this order, each "
        "with whoever has least so far. Then place them in the order 2, 3, 6, 7 and "
        "compare the loads."]),
    Hint(lambda f: f["drawn"], [
        "The value of a file is a list of KEEP of its different lines, or of all of "
        "them if there are fewer: whole, as they stand, none of them blank.",
        "A line that is in the file several times counts once. Is it given one "
        "number each time? Two pairs of a line with two numbers are not equal."]),
    Hint(lambda f: f["slanted"], [
        "Give every line a number that has nothing to do with where it stands or how "
        "it looks, and that is the same again for the same line.",
        "Imagine a machine into which you put a line, and that gives a number; for "
        "two similar lines the numbers are far apart. Which of the imports is such a "
        "machine?"]),
    Hint(lambda f: f["dice"], [
        "Something is different each time: random numbers, the time, hash() of a "
        "string, or the order of a set. What looks random has to follow from the "
        "line itself.",
        "Call your mapper twice with the same line, and again in a kernel that was "
        "started anew. Which part of the pair differs? zlib.crc32 is the same in "
        "every Python."]),
    Hint(lambda f: f["left_out"], [
        "A line that is not drawn from its own split is not drawn from the whole "
        "file, and what the combiner leaves out no reducer gets back. Which lines "
        "can it leave out?",
        "Five are wanted, by the smallest number. Can the line with the sixth "
        "smallest of a split be among the five of the file? The combiner yields "
        "values alone."]),
]
