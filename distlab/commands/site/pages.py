"""The pages of the site, as notebooks and text that Sphinx reads."""

import base64
import hashlib
import html
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from itertools import starmap
from pathlib import Path

from distlab.collectives import ring_all_reduce
from distlab.commands.film import filmed
from distlab.commands.running.hosted_notebooks import repository
from distlab.learner.quiz import cards
from distlab.show.assets import once

__all__ = ["lesson_page", "local", "start_page", "with_images"]

_REMOTE_IMAGE = re.compile(r"!\[([^\]]*)\]\(https?:[^)]*\)")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)\s]+)\)")
_DATA = re.compile(r'src="data:image/(\w+)[^,"]*;base64,([^"]{400,})"')
_NAMES = {"deepspeed": "DeepSpeed", "mpi": "Open MPI", "postgres": "PostgreSQL"}
_NAMES |= {"redis": "Redis", "spark": "Spark"}
_CARD_LINK = re.compile(r'(href="\w+)\.ipynb(?=#cell-id=)')
_BETWEEN = "<!-- the next output -->"


def local(text: str, page: str, pages: Collection[str]) -> str:
    """Return a page's Markdown without remote images, and with links to `pages`.

    Other links lead to the repository. page: its path, such as
    "lessons/10_ring_all_reduce.ipynb"; pages: those of the site.
    """

    def resolved(found):
        image, words, target = found.groups()
        path = (Path("/", page).parent / target.partition("#")[0]).resolve()
        place = path.relative_to("/").as_posix()
        if image or place in pages:
            return found[0]
        return f"[{words}]({repository()}/blob/main/{place})"

    return _LINK.sub(resolved, _REMOTE_IMAGE.sub(r"\1", text))


def with_images(text: str, folder: Path, up: str) -> str:
    """Return HTML whose images are files in `folder`, loaded when they are visible.

    up: the relative path from the page to the top of the site.
    """

    def written(found):
        content = base64.b64decode(found[2])
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{found[1]}"
        (folder / name).write_bytes(content)
        return f'loading="lazy" src="{up}_static/{folder.name}/{name}"'

    return _DATA.sub(written, text)


def lesson_page(stem: str, notebook: dict, pages: Collection[str], images: Path):
    """Change an executed lesson into the source of its page, in place."""
    shown = {card.cell for card in cards(stem)}
    note = _recorded_note(stem, notebook["metadata"]["distlab_recorded"])
    new = []
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = local(cell["source"], f"lessons/{stem}.ipynb", pages)
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
        if cell["id"] in shown:
            place = f"cell-id={cell['id']}"
            new.append(_markdown(f"at-{cell['id']}", f'<span id="{place}"></span>'))
        new.append(cell)
    notebook["cells"] = [new[0], _markdown("at-recorded", note), *new[1:]]
    _slim(notebook, images)


def _markdown(name, text):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def _slim(notebook, images):
    """Leave one copy of each style and script in a page, and its images in files.

    Cards, which link to cells of notebooks, link to the lessons' pages.
    """
    pages = [
        output["data"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    outputs = _BETWEEN.join("".join(data["text/html"]) for data in pages)
    outputs = _CARD_LINK.sub(r"\1.html", once(outputs))
    slim = with_images(outputs, images, "../").split(_BETWEEN)
    for data, text in zip(pages, slim, strict=True):
        data["text/html"] = text


def _recorded_note(stem, run):
    systems = ""
    if run["systems"]:
        systems = f" With the real {_listed(run['systems'])}."
    if run["missing"]:
        systems += f" Without {_listed(run['missing'])}, not installed there."
    return (
        f":::{{admonition}} A recorded run\n:class: recorded\n{run['date']}, "
        f"{run['cores']} cores, {run['system']}, Python {run['python']}, PyTorch "
        f"{run['torch']}.{systems} Players, predictions and cards work in this page. "
        f"To change cells and run them, [start lesson {stem[:2]}](../index.md#Start) "
        "on your machine.\n:::"
    )


def _listed(names):
    names = [_NAMES.get(name, name) for name in names]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def start_page(lessons: Mapping[str, dict], others: Sequence[str], readme: str) -> str:
    """Return the start page: an introduction, an animation, the start, the lessons.

    lessons: by their stems. others: the pages after them. readme: the README's text.
    """
    page = resources.files("distlab.commands.site").joinpath("web/start.md")
    start = re.search(r"^## Start\n(.*?)^## ", readme, re.DOTALL | re.MULTILINE)
    return page.read_text("utf-8").format(
        lead=readme.split("\n\n")[1],
        player=filmed(ring_all_reduce, 4)[1].html(),
        start=start[1] if start else "",
        lessons="".join(starmap(_row, lessons.items())),
        lesson_tree="\n".join(f"lessons/{stem}" for stem in lessons),
        documents="\n".join(others),
    )


def _row(stem, notebook):
    """Return the list item of a lesson, from its first cell."""
    title, question, about = "".join(notebook["cells"][0]["source"]).split("\n\n")[:3]
    number, _, name = title.removeprefix("# ").partition(" · ")
    time = re.search(r"\d+ minutes|[Nn]early \w+ hours", about)
    return (
        f'<li><a href="lessons/{stem}.html"><span class="number">{number}</span>'
        f'<b>{html.escape(name)}</b><span class="question">'
        f"{html.escape(question.strip('*'))}</span>"
        f"<small>{time[0] if time else ''}</small></a></li>"
    )
