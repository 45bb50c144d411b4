"""`distlab glossary`: the terms that the lessons define, as one page.

A lesson defines a term in bold, in the sentence where it is first needed, and lists its
terms in the cell `terms`. The page has that sentence, and a link to the lesson.
"""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from distlab.commands.lessons import find_lessons
from distlab.errors import DistlabError

__all__ = ["definitions", "glossary", "page", "terms"]

_HEAD = """# Glossary

Every term of the course, in the sentence that defines it. Made by `distlab glossary`
from the lessons.
"""


def glossary(
    to: Annotated[Path, typer.Option(help="The page to write.")] = Path(
        "docs/glossary.md"
    ),
) -> None:
    """Write the page of all terms that the lessons define."""
    to.write_text(page(find_lessons([])), encoding="utf-8")


def page(lessons: list[Path]) -> str:
    """Return the glossary of some lessons, as Markdown.

    Raises: DistlabError if a listed term is not defined, or is defined twice.
    """
    entries = {}
    for lesson in lessons:
        for term, sentence in definitions(lesson).items():
            if term.lower() in entries:
                other = entries[term.lower()][2].name
                raise DistlabError(f"{lesson.name} and {other} both define {term}.")
            entries[term.lower()] = term, sentence, lesson
    lines, letter = [_HEAD], None
    for key, (term, sentence, lesson) in sorted(entries.items()):
        if key[0] != letter:
            letter = key[0]
            lines.append(f"\n## {letter.upper()}\n")
        sentence = re.sub(r"\]\((?=\d\d_)", "](../lessons/", sentence)
        where = f"[{lesson.stem[:2]}](../lessons/{lesson.name})"
        lines.append(f"- **{term}** ({where}): {sentence}")
    return "\n".join(lines) + "\n"


def terms(lesson: Path) -> list[str]:
    """Return the terms that a lesson lists in its cell `terms`."""
    for cell in _cells(lesson):
        if cell["id"] == "terms":
            return [t.strip() for t in cell["source"].partition("): ")[2].split(" · ")]
    return []


def definitions(lesson: Path) -> dict[str, str]:
    """Return the sentence that defines each term of a lesson's list.

    Raises: DistlabError if a term is not in bold in one place exactly.
    """
    found = {}
    prose = [c["source"] for c in _cells(lesson) if c["cell_type"] == "markdown"]
    for term in terms(lesson):
        bold = re.compile(rf"\*\*{re.escape(term)}\*\*", re.IGNORECASE)
        places = [s for text in prose for s in _sentences(text) if bold.search(s)]
        if len(places) != 1:
            raise DistlabError(
                f"{lesson.name} lists {term}, and defines it in {len(places)} "
                "sentences. Set it in bold in the one that defines it."
            )
        found[term] = places[0].replace("**", "")
    return found


def _cells(lesson):
    cells = json.loads(lesson.read_text())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def _sentences(text):
    """Yield the sentences of Markdown; a list item or a row begins a new one."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\.) ?)", text):
        line = re.sub(r"^(?:[-*>]|\d+\.) +", "", " ".join(block.split()))
        yield from re.split(r"(?<=[.?])\)? (?=[A-Z\"*(`$α-ω])", line)
