"""The player's page: an animation, or two, as HTML that needs no kernel, no network.

    <style> scoped to the player's class
    <div class="distlab-player" data-distlab="id">   head, films, differences, controls
    <script> the parts in web/, which all players of a page share; <script> the data

Without scripts the page shows the last frame, as SVG, or a given image instead.
"""

import json
import re
import secrets
from functools import lru_cache
from html import escape

from distlab.show.assets import read, script, style, themed
from distlab.show.player.data import player_data
from distlab.show.player.painter import Painter
from distlab.show.player.panel import PlayerPanel
from distlab.show.player.rank_layout import WIDTH
from distlab.show.player.svg import rank_style

__all__ = ["fragment"]

_ROOT = ".distlab-player"
_SCRIPTS = (
    "stage.js",
    "lanes.js",
    "space.js",
    "spacetime.js",
    "logs.js",
    "save.js",
    "controls.js",
)
_VIEWS = (
    ("logs", "logs"),
    ("graph", "graph"),
    ("lanes", "lanes"),
    ("space", "space-time"),
)
# drawn and not written: not every font has these letters
_BUTTONS = (
    ("start", "M3 3v10h2V3zM14 3v10L6 8z", "to the start"),
    ("back", "M10 3v10L4 8zM11 3h2v10h-2z", "one step back"),
    ("play", "M4 2v12l9-6z", "play"),
    ("next", "M6 3v10l6-5zM3 3h2v10H3z", "one step forward"),
    ("end", "M13 3v10h-2V3zM2 3v10l8-5z", "to the end"),
)
_KEYS = (
    "space: play or pause · ← →: one step · ↑ ↓: speed · Home, End · 1 2 3 4: views · "
    "n: next fault or other event · + −: zoom in the lanes, 0: all · "
    "Esc: back to the notebook"
)


def fragment(
    animations, *, names=(), differs=0, verdict="", wrong=False, image=""
) -> str:
    """Return the player of one animation, or of two, as HTML for a cell's output.

    names: over each animation, if there are two. differs: the first step at which they
    differ, 0 for none. verdict: the difference there, in words; `wrong` if that is a
    mistake. image: a data URL of the picture for pages that run no scripts.
    A wrong run opens at the mistake, and any other where its animation says.
    """
    key = secrets.token_hex(6)
    pair = len(animations) > 1
    blocks = "".join(
        _animation(animation, f"{key}{number}", names[number] if pair else "", pair)
        for number, animation in enumerate(animations)
    )
    shown = animations[0]
    kind = " two" if pair and "graph" in shown.VIEWS else ""
    opens = differs if wrong else shown.first_shown()
    data = [player_data(animation) for animation in animations]
    notes = " ".join(
        dict.fromkeys(note for animation in data for note in animation["notes"])
    )
    label = escape(f"Player: {shown.title or shown.subtitle}")
    alt = escape(" ".join(animation.alt() for animation in animations))
    still = f'<img class="strip" alt="{alt}" src="{image}">' if image else ""
    hidden = " hidden" if image else ""
    return (
        f"{_style()}"
        f'<div class="distlab-player{kind}" data-distlab="{key}" '
        f'data-lm-suppress-shortcuts="true" tabindex="0" role="group" '
        f'aria-label="{label}">'
        f"{_head(shown)}{_verdict(verdict, differs, wrong)}"
        f'{still}<div class="runs"{hidden}>{blocks}</div>'
        f'{_bar()}<div class="keys" hidden>{_KEYS}</div>'
        f'<div class="notes">{escape(notes)}</div></div>'
        f"{_script()}<script>(()=>{{const runs={_literal(data)};"
        f'for(const root of document.querySelectorAll(\'[data-distlab="{key}"]:not('
        f"[data-ready])'))distlabPlayer(root,runs,{differs},{opens})}})()</script>"
    )


def _head(animation):
    tabs = "".join(
        f'<button role="tab" data-view="{view}">{name}</button>'
        for view, name in _VIEWS
        if view in animation.VIEWS
    )
    return (
        f'<div class="head"><b>{escape(animation.title)}</b>'
        f"<span>{escape(animation.subtitle)}</span>"
        '<div class="views" role="tablist" '
        f"hidden>{tabs if len(animation.VIEWS) > 1 else ''}</div></div>"
    )


def _verdict(words, differs, wrong):
    if not words:
        return ""
    same = "" if wrong else " same" if not differs else " other"
    go = '<button data-do="differs" hidden>go there</button>' if differs else ""
    return f'<div class="differs{same}">{escape(words)} {go}</div>'


def _animation(animation, key, name, pair):
    painter, last = Painter(animation), len(animation.frames) - 1
    frame = animation.frames[last]
    graph = ""
    if "graph" in animation.VIEWS:
        drawn = f'{painter.base()}<g class="still">{painter.dynamic(last)}</g>'
        box = f'viewBox="0 0 {WIDTH + 20} {animation.geometry.height + 8:g}"'
        graph = f'<svg {box}><g transform="translate(14 4)">{drawn}</g></svg>'
        graph += "" if pair else PlayerPanel(animation).svg(last, clip=f"c{key}")
    over = f"<div><b>{escape(name)}</b></div>" if name else ""
    others = [view for view in animation.VIEWS if view != "graph"]
    return (
        f'<div class="run">{over}<div class="said" aria-live="polite">'
        f"<b>{escape(frame.title)}</b><span>{escape(frame.text)}</span></div>"
        f'<div class="stage" role="img" aria-label="{escape(animation.alt())}">'
        f'<div class="graph">{graph}</div>'
        + "".join(f'<svg class="{view} off"></svg>' for view in others)
        + "</div></div>"
    )


def _bar():
    buttons = "".join(
        f'<button class="{do}" data-do="{do}" aria-label="{words}" title="{words}">'
        f'<svg viewBox="0 0 16 16"><path d="{drawn}"/></svg></button>'
        for do, drawn, words in _BUTTONS
    )
    return (
        f'<div class="bar" hidden>{buttons}<div class="scrub"><input type="range" '
        'min="0" step="any" value="0" aria-label="position"></div>'
        '<span class="count"></span>'
        '<button class="speed" data-do="speed" aria-label="speed">1×</button>'
        '<span class="zoom off"><button data-do="out" aria-label="zoom out">−</button> '
        '<button data-do="in" aria-label="zoom in">+</button></span></div>'
    )


def _literal(data):
    """Return data as a literal that no label can break out of."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


@lru_cache(maxsize=1)
def _script():
    parts = (read("distlab.show.player", name) for name in _SCRIPTS)
    return script(*parts, "globalThis.distlabPlayer=mount")


@lru_cache(maxsize=1)
def _style():
    """Return the style with every rule kept to the player."""
    package = "distlab.show.player"
    rules = re.findall(
        r"([^{}]+)(\{[^}]*\})", read(package, "stage.css") + rank_style()
    )
    scoped = "".join(
        ",".join(f"{_ROOT} {part.strip()}" for part in names.split(",")) + body
        for names, body in rules
    )
    page = read(package, "page.css").replace("ROOT", _ROOT)
    return style(themed(_ROOT), page, scoped)
