"""Small folders of text for the checks of MapReduce, and what one process finds there.

Everything here is written another way than a learner would write it, and on purpose
without the library's own functions.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from distlab.grading.salt import salted

__all__ = [
    "index_of",
    "lines_of",
    "means_of",
    "named_lines",
    "needed_pairs",
    "own_lines",
    "sample_files",
    "source_files",
    "uneven_files",
]

_WORDS = ["self", "def", "return", "x", "x2", "_y", "Größe", "Self", "import", "be"]
_BETWEEN = [" ", "(", ", ", ".", " = ", ": ", "  # ", ") ", " 42 ", '"']


def source_files(case: str) -> dict[str, bytes]:
    """Return name -> content: made up from the words of `case`, or a real package."""
    if case == "the package json":
        folder = Path(json.__file__).parent
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}
    rng = salted(case)
    names = {
        "one file": ["main.py"],
        "three files": ["mail.py", "mail/text.py", "main.py"],
        "two folders": ["one/__init__.py", "two/__init__.py", "two/a.py"],
        "twenty files": [f"f{number:02}.py" for number in range(20)],
        "some files are empty": ["a.py", "b/c.py", "d.py", "e.py", "f.py"],
    }[case]
    files = {name: _source(rng, name).encode() for name in names}
    if case == "some files are empty":
        files |= {"a.py": b"", "d.py": b"\n\n  \n", "e.py": b"self.x"}
        files["f.py"] = files["f.py"].replace(b"\n", b"\r\n")
    return files


def _source(rng, name):
    """Return a dozen lines; the last word of each is at the line's very end."""
    own = [f"only_in_{Path(name).stem.strip('_')}", *rng.sample(_WORDS, 7)]
    lines = []
    for _ in range(12):
        line = "    " * rng.randrange(3)
        for _ in range(rng.randrange(5)):
            line += rng.choice(own) + rng.choice(_BETWEEN)
        lines.append(line + rng.choice(own) * (rng.random() < 0.9))
    return "\n".join(lines) + "\n" * (rng.random() < 0.7)


def uneven_files(counts: list[int]) -> dict[str, bytes]:
    """Return files of so many lines: a few first words are most, many are rare.

    In a file of thousands all are frequent, so that a key has hundreds of lines.
    """
    rng = salted(counts)
    files = {}
    for number, count in enumerate(counts):
        most = 0.7 if count < 1000 else 1.0
        lines = [_indented(rng, most) for _ in range(count)]
        files[f"{rng.choice('abc')}/file{number}.py"] = "\n".join(lines).encode()
    return files


def _indented(rng, most):
    """Return a line that is blank, or begins with a frequent word, or a rare one.

    most: how many of all lines are no rare ones.
    """
    kind = rng.random()
    if kind < 0.3:
        return " " * rng.choice([0, 0, 4])
    first = rng.choice(_WORDS) if kind < most else f"rare{rng.randrange(300)}"
    between = rng.choice([" ", "  ", ""]) if kind < 0.9 else ""
    rest = " ".join(rng.choices(_WORDS, k=rng.randrange(1, 9))) if between else ""
    return " " * 4 * rng.randrange(4) + first + between + rest


def needed_pairs(files: dict[str, bytes], split_bytes: int) -> int:
    """Return how many pairs have to leave the map tasks: one for each key of a task.

    A line belongs to the task in whose stretch of all files, end to end, it begins.
    """
    pairs, start = set(), 0
    for name, content in sorted(files.items(), key=lambda item: Path(item[0])):
        at = start
        for line in content.split(b"\n"):
            if at < start + len(content):
                first = line.decode().lstrip().partition(" ")[0]
                pairs.add((at // split_bytes, name, first))
            at += len(line) + 1
        start += len(content)
    return len(pairs)


def lines_of(content: bytes) -> list[str]:
    """Return the lines of a file, without their ends."""
    lines = content.decode().replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def named_lines(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (name, line) for every line of all files."""
    for name, content in files.items():
        for line in lines_of(content):
            yield name, line


def index_of(files: dict[str, bytes]) -> dict[str, list[str]]:
    """Return word -> the names of the files in which it is, each once, sorted."""
    index = {}
    for name, line in sorted(named_lines(files)):
        word = ""
        for c in line + " ":
            if c == "_" or (c.isalnum() and (word or not c.isdecimal())):
                word += c
            elif word:
                names = index.setdefault(word, [])
                names += [name] * (name not in names[-1:])
                word = ""
    return index


def means_of(files: dict[str, bytes]) -> dict[tuple[str, str], float]:
    """Return (name, first word) -> the mean length of the lines that begin with it."""
    lengths = {}
    for name, line in named_lines(files):
        first = line.lstrip().partition(" ")[0]
        lengths.setdefault((name, first), []).append(len(line))
    return {key: sum(own) / len(own) for key, own in lengths.items()}


def sample_files(case: str) -> dict[str, bytes]:
    """Return files of different lines, from which some are to be drawn."""
    rng = salted(case)
    counts = {
        "forty files": [*[100] * 39, 3],
        "one long file": [3000, 2, 0],
        "few lines": [1000, 0, 1, 2, 2, 3],
    }[case]
    files = {}
    for number, count in enumerate(counts):
        lines = [_random_line(rng) for _ in range(count)]
        if 1 < count < 4:  # whoever leaves out short ones is seen
            lines = [lines[0][:8], *(f"{line}, at length" for line in lines[1:])]
        lines += rng.choices(lines, k=count // 8)  # some are there twice
        lines += ["", "", "# in every file"] * (count > 1)
        rng.shuffle(lines)
        files[f"part{number:02}.txt"] = "\n".join(lines).encode()
    return files


def own_lines(files: dict[str, bytes]) -> dict[str, list[str]]:
    """Return for each file the different lines that are in no other, in their order.

    What is in every file is drawn from all or none, and says nothing of fairness.
    """
    lines = {name: list(dict.fromkeys(lines_of(c))) for name, c in files.items()}
    times = Counter(line for own in lines.values() for line in own)
    return {
        name: [line for line in own if times[line] == 1 and line.strip()]
        for name, own in lines.items()
    }


def _random_line(rng):
    return "".join(rng.choices("abcdefghij klmnopqrstuvwxyz", k=rng.randrange(8, 40)))
