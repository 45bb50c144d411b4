"""Where the lessons are, and which of them a word on the command line means."""

import re
from pathlib import Path

import distlab
from distlab.errors import DistlabError

__all__ = ["UnknownLesson", "find_lessons", "lessons_folder"]


class UnknownLesson(DistlabError):
    """A word that means no lesson; the message lists the lessons there are."""


def lessons_folder() -> Path:
    """Return the lessons' folder: beside the package, else in the working directory.

    Raises: DistlabError, saying how to get the lessons, if there is none.
    """
    beside = Path(distlab.__file__).parents[1] / "lessons"
    for folder in (beside, Path.cwd() / "lessons"):
        if folder.is_dir():
            return folder
    raise DistlabError(
        "the lessons are not here. They come with the project, not with the package: "
        f"clone the project, and run this command in its folder. (No {beside}, and no "
        f"lessons folder in {Path.cwd()}.)"
    )


def find_lessons(words: list[str]) -> list[Path]:
    """Return the notebooks that `words` mean, each once; without words, every lesson.

    A word is a number ("10"), a stem ("10_ring_all_reduce") or the path of a notebook.

    Raises: UnknownLesson; DistlabError if there are no lessons to choose from.
    """
    if not words:
        return _all_lessons()
    found = [path for word in words for path in _meant_by(word)]
    return list(dict.fromkeys(path.absolute() for path in found))


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
    lessons = _all_lessons()
    found = [
        path for path in lessons if word == path.stem or _is_number(word, path.stem)
    ]
    if not found:
        names = "\n".join(f"    {path.stem}" for path in lessons)
        raise UnknownLesson(f"there is no lesson {word!r}. These are there:\n{names}")
    return found


def _is_number(word, stem):
    number = re.match(r"\d+", stem)
    return word.isdecimal() and number is not None and int(word) == int(number[0])
