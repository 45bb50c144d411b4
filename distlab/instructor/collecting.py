"""Collection of downloaded files into `submitted`, each under its student's name.

    anna_10_ring.ipynb, 10_ring_anna.ipynb, anna/whatever.ipynb
    anna.ipynb, anna.zip                  (if the gradebook knows a student anna)
    Anna Smith_12345_assignsubmission_file_10_ring.ipynb    (Moodle)
    smithanna_late_123_456_10_ring.ipynb                    (Canvas)
    10 Ring_anna_attempt_2026-01-30-15-00-00_10_ring.ipynb  (Blackboard)

nbgrader's zip_collect needs one regular expression that matches all the names, and
stops at the second file of a student.
"""

import re
import shutil
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from distlab.instructor.notebook_choice import plain_files, plain_name
from distlab.instructor.submissions import Trouble

__all__ = ["Collected", "collect"]

_NOTEBOOKS = (".ipynb", ".zip")
_MOODLE = r"(?P<who>.+?)_(?P<number>\d+)_assignsubmission_\w+?(_|$)(?P<file>.*)"
_CANVAS = r"(?P<who>[^_\W]+?)(_late)?_\d{2,}_\d{2,}_(?P<file>.+)"
_BLACKBOARD = r".*_(?P<who>[^_]+)_attempt_(?P<at>\d{4}(-\d\d){5})(_(?P<file>.*))?"
_PATTERNS = [re.compile(f"{p}$", re.I) for p in (_MOODLE, _BLACKBOARD, _CANVAS)]


@dataclass
class Collected:
    """The result of a collection. taken: (student, file name).

    same: students collected before. older: (student, file left out, the later one).
    """

    taken: list[tuple[str, str]] = field(default_factory=list)
    older: list[tuple[str, str, str]] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)


@dataclass(frozen=True)
class _Collected:
    """One student's file or folder.

    at: the time of submission, if its name has one. unsure: whether `who` counts only
    if the gradebook has a student of that name.
    """

    who: str
    number: str
    path: Path
    at: datetime | None = None
    unsure: bool = False


def collect(
    folder: Path, submitted: Path, assignment: str, students: set[str], force: bool
) -> Collected:
    """Copy the submissions in `folder` to nbgrader's folder; return the result.

    students: those in the gradebook; a name that differs only in case is theirs.
    force: whether to replace an earlier submission of a student.
    """
    collected, found = Collected(), {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        one = _whose(path, assignment)
        if one is None:
            collected.troubles.append(_nothing_in(path, students))
        elif not one.who or (one.unsure and not _is_a_students(one, students)):
            what = _not_whose(one, assignment)
            collected.troubles.append(Trouble("?", path.name, what))
        else:
            found.setdefault(_student(one, students), []).append(one)
    for student, several in sorted(_apart(found).items()):
        one, why = _only(several)
        target = submitted / student / assignment
        if one is None:
            collected.troubles.append(Trouble(student, *why))
        elif _same(one.path, target):
            collected.same.append(student)
        elif target.exists() and not force:
            what = "another one has been submitted already. --force replaces it."
            collected.troubles.append(Trouble(student, one.path.name, what))
        else:
            _put(one, target, assignment)
            collected.taken.append((student, one.path.name))
        if one is not None:
            collected.older += [
                (student, each.path.name, one.path.name)
                for each in several
                if _content(each.path) != _content(one.path)
            ]
    return collected


def _nothing_in(path, students):
    """Return the trouble with a file or folder that holds no submission."""
    if path.is_symlink() or not path.is_dir() or any(path.iterdir()):
        what = "it is neither a notebook nor a folder with one."
        return Trouble("?", path.name, what)
    student = _student(
        _named(path.name, path) or _Collected(path.name, "", path), students
    )
    if student not in students:
        return Trouble("?", path.name, "it is an empty folder.")
    what = "the gradebook knows this student, whose folder is empty. Ask for the files."
    return Trouble(student, path.name, what)


def _whose(path, assignment):
    """Return a file or folder with its student; None if it holds no notebook."""
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return None
    if path.is_dir():
        if not any(f.suffix.lower() in _NOTEBOOKS for f in plain_files(path)[0]):
            return None
    elif path.suffix.lower() not in _NOTEBOOKS:
        return None
    stem = path.name if path.is_dir() else path.stem
    if one := _named(stem, path):
        return one
    if path.is_dir():
        return _Collected(path.name, "", path)
    plain = re.sub(r"( ?\(\d+\))+$", "", stem)
    words = r"[ _-]+".join(map(re.escape, re.split(r"[ _-]+", assignment)))
    for pattern in (rf"(?P<who>.*?)[ _-]*{words}", rf"{words}[ _-]*(?P<who>.*?)"):
        if match := re.fullmatch(pattern, plain, re.I):
            return _Collected(_name(match["who"]), "", path)
    return _Collected(_name(plain), "", path, unsure=True)


def _is_a_students(one, students):
    """Return True if a bare name is a student's; if none are known, any one word is."""
    return _student(one, students) in students if students else "_" not in one.who


def _not_whose(one, assignment):
    """Return the message about a file whose name has no student."""
    why = ", and the gradebook knows no student of that name" * bool(one.who)
    example = f"ada_{assignment}{one.path.suffix.lower()}"
    return f"it does not say whose it is{why}. Name it like {example}."


def _named(stem, path):
    """Return the file with its student if a learning platform named it; else None."""
    for pattern in _PATTERNS:
        if match := pattern.match(stem):
            said = match.groupdict()
            at = said.get("at") and datetime.strptime(said["at"], "%Y-%m-%d-%H-%M-%S")
            return _Collected(
                _name(said["who"]), said.get("number") or "", path, at or None
            )
    return None


def _name(said):
    """Return a name as a folder's name, with underscores for blanks."""
    return re.sub(r"\s+", "_", said.strip(" _-"))


def _student(one, students):
    known = [name for name in students if plain_name(name) == plain_name(one.who)]
    return known[0] if len(known) == 1 else one.who


def _apart(found):
    """Return the files by student; students of one name get their numbers appended."""
    apart = {}
    for student, several in found.items():
        numbers = {one.number for one in several}
        for one in several:
            name = (
                student if len(numbers) == 1 else f"{student}_{one.number}".strip("_")
            )
            apart.setdefault(name, []).append(one)
    return apart


def _only(several):
    """Return (the submission that counts, None), or (None, (files, problem))."""
    if len({_content(one.path) for one in several}) == 1:
        return several[0], None
    times = [one.at for one in several]
    if None not in times and times.count(max(times)) == 1:
        return several[times.index(max(times))], None
    names = ", ".join(one.path.name for one in several)
    return None, (names, f"{len(several)} different ones. Leave the one that counts.")


def _content(path):
    files = plain_files(path)[0] if path.is_dir() else [path]
    return tuple(sorted(file.read_bytes() for file in files))


def _same(path, target):
    """Return True if `target` and `path` have equal files, timestamp.txt aside."""
    if not target.is_dir():
        return False
    there = [f for f in plain_files(target)[0] if f.name != "timestamp.txt"]
    files = plain_files(path)[0] if path.is_dir() else [path]
    contents = sorted(f.read_bytes() for f in files if f.name != "timestamp.txt")
    return sorted(file.read_bytes() for file in there) == contents


def _put(one, target, assignment):
    """Copy a submission to `target`, atomically."""
    aside = target.with_name(f".{target.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    if one.path.is_dir():
        for file in plain_files(one.path)[0]:
            copy = aside / file.relative_to(one.path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    else:
        suffix = one.path.suffix.lower()
        shutil.copyfile(one.path, aside / f"{assignment}{suffix}")
    if one.at is not None:
        (aside / "timestamp.txt").write_text(f"{one.at} UTC\n")
    if target.exists():
        shutil.rmtree(target)
    aside.rename(target)
