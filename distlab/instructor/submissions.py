"""Submissions for an assignment: the folder of each student, and those not usable.

submitted/anna/10_ring        anna
submitted/Anna (1)/10_ring    anna once more: the later one is taken, or none
submitted/bob/10_rign         a folder with the name of no assignment
"""

import difflib
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from distlab.instructor.notebook_choice import plain_name

__all__ = ["Submission", "Submissions", "Trouble", "find_submissions", "timestamp_of"]

_LARGEST_STAMP = 200


@dataclass(frozen=True)
class Submission:
    """One student's folder for the assignment, and notes on its oddities."""

    student: str
    folder: Path
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trouble:
    """A submission that cannot be graded: its student, its place, and advice."""

    student: str
    where: str
    what: str


@dataclass
class Submissions:
    """The result of the search. remarks: oddities that do not prevent grading."""

    submissions: list[Submission] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def find_submissions(
    submitted: Path, assignment: str, assignments: list[str], students: set[str]
) -> Submissions:
    """Return the submissions in the folder `submitted`.

    students: those in the gradebook. Similar names are one student unless listed here.
    """
    found = Submissions()
    by_person = {}
    for path in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        where = f"{submitted.name}/{path.name}"
        if path.is_symlink():
            what = f"it is a link to {os.readlink(path)}, and links are not followed."
            found.troubles.append(Trouble(path.name, where, what))
        elif not path.is_dir():
            found.remarks.append(
                f"{where} is a file, where students' folders are expected. "
                "`distlab collect` makes folders of downloaded files."
            )
        else:
            one = _assignment_folder(path, assignment, assignments, found)
            if one is not None:
                by_person.setdefault(plain_name(path.name), []).append(one)
    for person, folders in sorted(by_person.items()):
        if all(one.student in students for one in folders):
            found.submissions += (
                folders  # however much alike, they are different students
            )
        else:
            _take(person, folders, students, found)
    return found


def timestamp_of(folder: Path) -> datetime | None:
    """Return the time in timestamp.txt, in UTC; None if there is none.

    Raises: ValueError, if the file exists and holds no time.
    """
    path = folder / "timestamp.txt"
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST_STAMP).strip()
        return parse_utc(text) if text else None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"no time in {path.name}") from error


def _assignment_folder(student, assignment, assignments, found):
    """Return the student's folder for the assignment, or None; record problems."""
    alike, unknown = [], []
    others = {plain_name(name) for name in assignments if name != assignment}
    for path in sorted(student.iterdir()):
        plain = plain_name(path.name)
        if path.name == assignment or plain == plain_name(assignment):
            alike.append(path)
        elif path.is_dir() and path.name[0] not in "._" and plain not in others:
            unknown.append(path)
    where = f"{student.parent.name}/{student.name}"
    for path in unknown:
        what = _unknown(path.name, assignments)
        if alike:
            found.remarks.append(f"{where}/{path.name}: {what}")
        else:
            trouble = Trouble(student.name, f"{where}/{path.name}", what)
            found.troubles.append(trouble)
    usable = []
    for path in alike:
        if path.is_symlink():
            what = f"it is a link to {os.readlink(path)}, and links are not followed."
        elif not path.is_dir():
            what = f"it is a file. Put it into a folder {assignment}."
        else:
            usable.append(Submission(student.name, path))
            continue
        found.troubles.append(Trouble(student.name, f"{where}/{path.name}", what))
    if len(usable) > 1:
        one, why = _later(usable)
        one = one or next((u for u in usable if u.folder.name == assignment), None)
        if one is None:
            names = ", ".join(u.folder.name for u in usable)
            what = f"{len(usable)} folders could be it: {names}. Leave one."
            found.troubles.append(Trouble(student.name, where, what))
            return None
        others = ", ".join(u.folder.name for u in usable if u is not one)
        note = f"taken: {one.folder.name}{why}; not looked at: {others}"
        return Submission(one.student, one.folder, (note,))
    if usable and usable[0].folder.name != assignment:
        note = f"folder {usable[0].folder.name} taken as {assignment}"
        return Submission(student.name, usable[0].folder, (note,))
    return usable[0] if usable else None


def _take(person, folders, students, found):
    """Add the folder that counts, of one student's several, to `found`."""
    known = sorted(name for name in students if plain_name(name) == person)
    if len(folders) == 1:
        [one] = folders
        if one.student not in students and len(known) == 1:
            note = f"folder {one.student} taken as {known[0]}, whom the gradebook knows"
            one = Submission(known[0], one.folder, (note, *one.notes))
        found.submissions.append(one)
        return
    names = [one.student for one in folders]
    taken, why = _later(folders)
    if taken is None:
        what = (
            f"{' and '.join(names)} look like one student, and no timestamp.txt says "
            "which came last. Leave one, or put the students into the gradebook."
        )
        found.troubles.append(Trouble(names[0], f"folders {', '.join(names)}", what))
        return
    shortest = min(names, key=len)  # the one without " (1)"
    own = taken.student if len(taken.student) == len(shortest) else shortest
    student = known[0] if len(known) == 1 else own
    others = ", ".join(name for name in names if name != taken.student)
    note = f"folder {taken.student} taken{why}; not looked at: {others}"
    found.submissions.append(Submission(student, taken.folder, (note, *taken.notes)))


def _later(folders):
    """Return (the folder submitted last, why); (None, "") if times don't decide."""
    stamps = []
    for one in folders:
        try:
            stamps.append(timestamp_of(one.folder))
        except ValueError:
            stamps.append(None)
    if None in stamps or stamps.count(max(stamps)) > 1:
        return None, ""
    return folders[stamps.index(max(stamps))], ", which was submitted last"


def _unknown(name, assignments):
    near = difflib.get_close_matches(name, assignments, 1)
    if near:
        return f"no assignment is named so. If it is {near[0]}, rename the folder."
    return "no assignment is named so. Rename the folder, or move it away."
