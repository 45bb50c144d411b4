"""What tests do with pages of a browser."""

import json
import os
from functools import cache
from pathlib import Path

from stores import wait_until

from distlab import LINKS, Uniform, follow
from distlab.collectives import ring_all_reduce
from distlab.commands.lessons import find_lessons

__all__ = [
    "FABRIC",
    "GIVE_UP_MS",
    "cut_lesson",
    "followed_ring",
    "keep",
    "reload_until",
    "watched",
]

GIVE_UP_MS = 20_000 * float(os.environ.get("DISTLAB_PATIENCE", "1"))
FABRIC = Uniform(LINKS["NVLink 4"])


@cache
def followed_ring(world_size=4):
    """Return a ring all-reduce of simulated ranks, each number followed."""
    return follow(ring_all_reduce, world_size, fabric=FABRIC)


def watched(context):
    """Return a new page, and a list that gets what it complains of."""
    page, troubles = context.new_page(), []
    page.set_default_timeout(GIVE_UP_MS)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda asked: (troubles.append(asked.message), asked.dismiss()))

    def said(line):
        if line.type in ("error", "warning"):
            troubles.append(line.text)

    page.on("console", said)
    return page, troubles


def keep(part, name, **options):
    """Keep a picture of a page or a part of it if DISTLAB_SCREENSHOTS says where."""
    if folder := os.environ.get("DISTLAB_SCREENSHOTS"):
        part.screenshot(path=Path(folder, f"{name}.png"), **options)


def reload_until(page, seen):
    """Reload the page until `seen()`: Chromium may store what was kept a bit later."""

    def again():
        page.reload()
        return seen()

    wait_until(again)


def cut_lesson(folder, number, ids=(), name=""):
    """Write the cells of a lesson with some ids, or all, as a notebook; return it."""
    lesson = find_lessons([number])[0]
    notebook = json.loads(lesson.read_text())
    known = {cell["id"] for cell in notebook["cells"]}
    assert known.issuperset(ids), set(ids) - known
    cells = notebook["cells"]
    notebook["cells"] = [cell for cell in cells if not ids or cell["id"] in ids]
    path = folder / f"{name or lesson.stem}.ipynb"
    path.write_text(json.dumps(notebook))
    return path
