"""Word count on two workers, beside two plain processes that hold a Counter each.

    python tests/bench/wordcount.py [MB]

The text is the source of the standard library, repeated. The plain processes are forks
that read half of it each, from a file of its own, and send their Counter back through a
pipe, to be added. "lines" is how one would write it, and what ours is compared with:

    for line in file:
        counter.update(line.split())

It reads and counts line by line, as a mapper does. "at once" holds the words' half as a
whole and feeds the Counter one generator over it, in which nothing is called for a line
or a word; that is the fastest way there is. All take turns, and a ratio above 1 means
that ours is faster. CPU seconds are of all processes together: where others use the
machine, they say more than the clock.

Where ours goes: a third of a map task is the mapper itself, with its tuple for every
word; more than half is the table, which asks a dict about each word as a Counter does,
and mostly waits for memory. What is left is done for each distinct word and not for
each word: each of four map tasks sorts, combines and writes all 90,000 of this text,
and the reduce tasks merge them. A longer text of the same words has less of that.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import psutil

from distlab.dataflow import MapReduce
from distlab.units import MB, readable_bytes

WORKERS, TURNS = 2, 3


def mapper(line):
    """Yield each word."""
    for word in line.split():
        yield word, 1


def pairs_by_zip(line):
    """Return the same pairs, made in C."""
    words = line.split()
    return zip(words, (1,) * len(words), strict=True)


def reducer(word, counts):
    """Add up."""
    return sum(counts)


def lines(path, pipe):
    """Count the words of a file, line by line."""
    counter = Counter()
    with open(path, errors="replace", newline="\n") as file:
        for line in file:
            counter.update(line.split())
    pipe.send(counter)


def at_once(path, pipe):
    """Count the words of a file that is held as a whole."""
    text = Path(path).read_bytes().decode(errors="replace").split("\n")
    pipe.send(Counter(word for line in text for word in line.split()))


def plain(paths, count):
    """Return the counts of a plain process for each file, added."""
    fork, pipes, processes = multiprocessing.get_context("fork"), [], []
    for path in paths:
        mine, theirs = fork.Pipe(duplex=False)
        processes.append(fork.Process(target=count, args=(path, theirs)))
        processes[-1].start()
        pipes.append(mine)
    total = Counter()
    for pipe, process in zip(pipes, processes, strict=True):
        total.update(pipe.recv())
        process.join()
    return total


def library(path, size):
    """Write `size` bytes of the standard library's source."""
    folder = Path(os.__file__).parent
    source = b"".join(p.read_bytes() for p in sorted(folder.glob("*.py")))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(source[: size - file.tell()])


def halves(path):
    """Cut a file at a line end near its middle; return the paths of both halves."""
    text = Path(path).read_bytes()
    cut = text.index(b"\n", len(text) // 2) + 1
    paths = [f"{path}.1", f"{path}.2"]
    for half, part in zip(paths, (text[:cut], text[cut:]), strict=True):
        Path(half).write_bytes(part)
    return paths


def cpu_seconds():
    """Return what this process and all its descendants have used up to now."""
    me, total = psutil.Process(), 0
    for process in (me, *me.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
        total += times.children_user + times.children_system
    return total


def measured(call):
    """Return a call's result, as a dict, with its wall and CPU seconds."""
    cpu, began = cpu_seconds(), time.perf_counter()
    answer = call()
    took = time.perf_counter() - began
    return dict(answer), took, cpu_seconds() - cpu


def main():
    """Print the table."""
    size = int(sys.argv[1]) * MB if sys.argv[1:] else 100 * MB
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        library(path, size)
        paths = halves(path)
        count = partial(MapReduce, reducer=reducer, combiner=reducer)
        ways = {
            "plain, at once": lambda: plain(paths, at_once),
            "plain, lines": lambda: plain(paths, lines),
            "yield word, 1": lambda: count(mapper).run(path, workers=WORKERS),
            "zip(words, ones)": lambda: count(pairs_by_zip).run(path, workers=WORKERS),
        }
        expected = plain(paths, at_once)
        taken = {name: [] for name in ways}
        for turn in range(TURNS + 1):  # the first one starts the process server
            for name, way in ways.items():
                answer, *seconds = measured(way)
                assert answer == expected
                taken[name] += [seconds] * (turn > 0)
    middle = {
        name: [statistics.median(each) for each in zip(*rows, strict=True)]
        for name, rows in taken.items()
    }
    print(f"{readable_bytes(size)}, {WORKERS} processes, median of {TURNS}")
    print(f"{'':18}{'seconds':>9}{'/ lines':>9}{'/ at once':>11}", end="")
    print(f"{'CPU s':>10}{'/ lines':>9}{'/ at once':>11}")
    for name, both in middle.items():
        print(f"{name:18}", end="")
        for which, seconds in enumerate(both):
            print(f"{seconds:{9 + which}.2f}", end="")
            print(f"{middle['plain, lines'][which] / seconds:9.2f}", end="")
            print(f"{middle['plain, at once'][which] / seconds:11.2f}", end="")
        print()


if __name__ == "__main__":
    main()
