"""Styles and scripts of our HTML, in the colours of whatever page it stands in.

Every output of a notebook has its own copy: it may be cleared, run again, or shown in a
frame of its own. A whole page needs one copy of each, and `once` leaves the first.
"""

import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from distlab.show.canvas.theme import named_colors

__all__ = ["document", "once", "read", "script", "style", "themed", "widget_view"]

# nbconvert, which reads and writes what it exports, gives the attribute a value.
_ONCE = re.compile(r'<(style|script) data-once(?:="")?>.*?</\1>', re.DOTALL)

# A site's pages, Colab, JupyterLab and its exported pages, VS Code; else the system.
_DARK = (
    "[data-theme=dark]",
    "html[theme=dark]",
    "body[data-jp-theme-light=false]",
    "body[data-vscode-theme-kind=vscode-dark]",
    "body[data-vscode-theme-kind=vscode-high-contrast]",
)
_SAYS_NOTHING = (
    "html:not([data-theme=light],[theme]) "
    "body:not([data-theme=light],[data-jp-theme-light],[data-vscode-theme-kind])"
)
_PAGE = """body{margin:0}
.distlab-page{box-sizing:border-box;min-height:100vh;padding:8px;
background:var(--paper);color:var(--ink);font:14px/1.5 system-ui,sans-serif}"""


def themed(
    root: str,
    light: Mapping[str, str] | None = None,
    dark: Mapping[str, str] | None = None,
) -> str:
    """Return rules that give `root` CSS variables by the theme of its page.

    They are those of `named_colors`, such as var(--ink), if no others are given.
    """
    light, dark = (
        f"color-scheme:{scheme};"
        + ";".join(f"--{name}:{color}" for name, color in colors.items())
        for scheme, colors in (
            ("light", light or named_colors(dark=False)),
            ("dark", dark or named_colors(dark=True)),
        )
    )
    return (
        f"{root}{{{light}}}:is({','.join(_DARK)}) {root}{{{dark}}}"
        f"@media (prefers-color-scheme: dark){{{_SAYS_NOTHING} {root}{{{dark}}}}}"
    )


def style(*texts: str) -> str:
    """Return texts of CSS as a style that a page needs once."""
    return f"<style data-once>{''.join(texts)}</style>"


def script(*texts: str) -> str:
    """Return texts of JavaScript, in a scope of their own, as a script needed once."""
    inner = "\n".join(texts)
    return f"<script data-once>(()=>{{{inner}}})()</script>"


def read(package: str, name: str) -> str:
    """Return the text of a file in the folder web of a package."""
    return (files(package) / "web" / name).read_text(encoding="utf-8")


def once(html: str) -> str:
    """Return a page with the first copy of each of our styles and scripts.

    Called by: exporters of a whole page, which no kernel changes.
    """
    seen = set()

    def kept(found):
        again = found[0] in seen
        seen.add(found[0])
        return "" if again else found[0]

    return _ONCE.sub(kept, html)


def widget_view(widget) -> dict[str, dict]:
    """Return the bundle that shows a widget; ipywidgets 7 has no function for it."""
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


def document(body: str, title: str) -> str:
    """Return `body` as a page of its own."""
    return once(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>{style(themed('.distlab-page'), _PAGE)}</head>"
        f'<body><div class="distlab-page">{body}</div></body></html>'
    )
