"""Word count on two workers, beside two plain processes that hold a Counter each.

    python tests/bench/wordcount.py [MB]

The text is the source of the standard library, repeated. The plain processes are forks
that read half of the file each and send their Counter back through a pipe, to be added:
"generator" feeds it word by word, "update" line by line. All take turns, three of each,
and a ratio above 1 means that ours is faster.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

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


def half(path, start, end, way, pipe):
    """Count the words of the lines that begin between two offsets."""
    counter = Counter()
    with open(path, "rb") as file:
        file.seek(start)
        lines = file.read(end - start).decode(errors="replace").split("\n")
    if way == "generator":
        counter.update(word for line in lines for word in line.split())
    else:
        for line in lines:
            counter.update(line.split())
    pipe.send(counter)


def plain(path, way):
    """Return the counts of two plain processes, added."""
    size, fork = os.path.getsize(path), multiprocessing.get_context("fork")
    with open(path, "rb") as file:
        file.seek(size // 2)
        file.readline()
        cuts = [0, file.tell(), size]
    pipes = []
    for start, end in pairwise(cuts):
        mine, theirs = fork.Pipe(duplex=False)
        fork.Process(target=half, args=(path, start, end, way, theirs)).start()
        pipes.append(mine)
    first, second = (pipe.recv() for pipe in pipes)
    first.update(second)
    return first


def library(path, size):
    """Write `size` bytes of the standard library's source."""
    folder = Path(os.__file__).parent
    source = b"".join(p.read_bytes() for p in sorted(folder.glob("*.py")))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(source[: size - file.tell()])


def main():
    """Print the table."""
    size = int(sys.argv[1]) * MB if sys.argv[1:] else 100 * MB
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        library(path, size)
        count = partial(MapReduce, reducer=reducer, combiner=reducer)
        ways = {
            "plain, generator": lambda: plain(path, "generator"),
            "plain, update": lambda: plain(path, "update"),
            "yield word, 1": lambda: count(mapper).run(path, workers=WORKERS),
            "zip(words, ones)": lambda: count(pairs_by_zip).run(path, workers=WORKERS),
        }
        taken = {name: [] for name in ways}
        answers = []
        for _ in range(TURNS):
            for name, way in ways.items():
                began = time.perf_counter()
                answer = way()
                taken[name].append(time.perf_counter() - began)
                answers.append(dict(answer))
        assert all(answer == answers[0] for answer in answers)
    middle = {name: statistics.median(each) for name, each in taken.items()}
    print(f"{readable_bytes(size)}, {WORKERS} processes, median of {TURNS}")
    print(f"{'':20}{'seconds':>10}{'MB/s':>8}{'/ generator':>14}{'/ update':>11}")
    for name, seconds in middle.items():
        print(f"{name:20}{seconds:10.2f}{size / MB / seconds:8.1f}", end="")
        print(f"{middle['plain, generator'] / seconds:14.2f}", end="")
        print(f"{middle['plain, update'] / seconds:11.2f}")


if __name__ == "__main__":
    main()
