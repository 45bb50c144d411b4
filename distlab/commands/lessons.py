"""Lessons and exercises: their folders, and the lookup of one by number or name."""

import ast
import json
import re
from pathlib import Path

import distlab
from distlab.errors import DistlabError, UnknownLesson
from distlab.files import course_files

__all__ = [
    "find_exercises",
    "find_lessons",
    "is_number",
    "lesson_parameters",
    "lessons_folder",
]

_BESIDE = Path(distlab.__file__).parents[1]


def lessons_folder() -> Path:
    """Return the lessons' folder: beside the package, else in the working directory.

    Raises: DistlabError, with a way to get the lessons, if there is none.
    """
    installed = {path.parent for path in course_files().values()}
    places = [_BESIDE / "lessons", Path.cwd() / "lessons"]
    return _folder("lessons", [*places, *(p for p in installed if p.name == "lessons")])


def _folder(name, places):
    for folder in places:
        if folder.is_dir():
            return folder
    raise DistlabError(
        f"the {name} are not here. They come with the project, not with the package: "
        "clone the project, and run this command in its folder. (No "
        f"{_BESIDE / name}, and no {name} folder in {Path.cwd()}.)"
    )


def find_lessons(words: list[str]) -> list[Path]:
    """Return the notebooks that `words` name, each once; without words, every lesson.

    A word is a number ("10"), a stem ("10_ring_all_reduce") or the path of a notebook.

    Raises: UnknownLesson; DistlabError if there are no lessons to choose from.
    """
    if not words:
        return _all_lessons()
    found = [path for word in words for path in _meant_by(word)]
    return list(dict.fromkeys(path.absolute() for path in found))


def find_exercises(words: list[str]) -> list[Path]:
    """Return the solutions' folders that `words` name; without words, all of them.

    A word is a number or a stem, as for lessons. They are those of the course in the
    working directory, if it is one, else the project's.

    Raises: UnknownLesson; DistlabError if there are no solutions to choose from.
    """
    places = Path.cwd() / "solutions", _BESIDE / "solutions"
    folder = _folder("solutions", places)
    exercises = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    found = [path for word in words for path in _called(word, exercises, "exercise")]
    return list(dict.fromkeys(found or exercises))


def _all_lessons():
    folder = lessons_folder()
    lessons = sorted(folder.glob("*.ipynb"))
    if not lessons:
        raise DistlabError(f"there is no lesson in {folder} yet.")
    return lessons


def _meant_by(word):
    if word.endswith(".ipynb"):
        if Path(word).is_file():
            return [Path(word)]
        raise UnknownLesson(f"there is no notebook {word} (seen from {Path.cwd()}).")
    return _called(word, _all_lessons(), "lesson")


def _called(word, paths, what):
    found = [path for path in paths if word == path.stem or is_number(word, path.stem)]
    if not found:
        names = "\n".join(f"    {path.stem}" for path in paths)
        raise UnknownLesson(f"there is no {what} {word!r}. These are there:\n{names}")
    return found


def is_number(word: str, stem: str) -> bool:
    """Return True if a word is the number with which a stem begins."""
    number = re.match(r"\d+", stem)
    return word.isdecimal() and number is not None and int(word) == int(number[0])


def lesson_parameters(lesson: Path) -> list[str]:
    """Return the names that the lesson's cell with the tag `parameters` defines."""
    names = []
    for cell in json.loads(lesson.read_text("utf-8"))["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            for node in ast.parse("".join(cell["source"])).body:
                found = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
                names += [each.id for each in found if isinstance(each.ctx, ast.Store)]
    return names
