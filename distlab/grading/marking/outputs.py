"""Outputs of a cell as a kernel told them: only what is one, and so much of it.

An instructor looks at them in a page that can write grades, so nothing that a page
would run is kept: text, pictures, and tables without any script.
"""

import json
import re

import bleach
import nbformat
from nbformat import NotebookNode, from_dict

from distlab.grading.marking.drawings import only_draws

__all__ = ["inert", "inert_text", "plain", "trouble", "writable"]

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_PICTURES = {
    "image/svg+xml": lambda svg: len(svg) <= _MOST_SVG and only_draws(svg),
    "image/png": _BASE64.fullmatch,
    "image/jpeg": _BASE64.fullmatch,
}
_TAG = re.compile(r"<(?!https?://[^\s<>\"']*>)(?=[A-Za-z/!?])")
_OPENS = re.compile(r"<(script|style)\b", re.IGNORECASE)
_CLOSES = {
    name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("script", "style")
}
_MOST_SVG = 500_000  # characters
_MOST_HTML = 100_000  # and to clean them takes 2 s at most
_MOST_PAGES = 3 * _MOST_HTML  # of a cell
_HIDDEN = re.compile(r"&(?=#|colon|tab|newline)", re.IGNORECASE)
_SCRIPT = re.compile(r"(javascript|vbscript)\s*:", re.IGNORECASE)
_TAGS = """table thead tbody tfoot tr th td caption p br b i em strong code pre ul ol li
div span h1 h2 h3 h4 hr sub sup dl dt dd"""
_SPANS = {"td": ["colspan", "rowspan"], "th": ["colspan", "rowspan"]}


def trouble(why: str) -> NotebookNode:
    """Return the output of a cell that was ended, or was not run."""
    said = f"\x1b[0;31m{why}\x1b[0m"
    told = {"output_type": "error", "ename": "CellEnded", "evalue": why}
    return from_dict(told | {"traceback": [said]})


def plain(outputs: list, most_bytes: int) -> list:
    """Return the outputs that a notebook can hold, as long as they are not too large.

    What a kernel sent need not be what a kernel sends.
    """
    kept, size, pages = [], 0, 0
    for output in outputs:
        length = _size(output)
        size += length or 0
        if length is None:
            kept.append(trouble("An output was left out: it is none that can be kept."))
        elif size > 8 * most_bytes:
            return [*kept, trouble("More was shown than is kept.")]
        elif "data" in output:
            pages += len(_joined(output["data"].get("text/html", "")))
            if pages > _MOST_PAGES:
                output["data"].pop("text/html", None)
            output["data"], output["metadata"] = inert(output["data"]), {}
            kept.append(output)
        else:
            kept.append(output)
    return kept


def _size(output):
    """Return an output's length as text; None if no notebook can hold it."""
    try:
        nbformat.validate(output, ref="output", version=4)
        return len(json.dumps(output, ensure_ascii=False).encode())
    except Exception:  # as many kinds as there are ways to be none
        return None


def inert(data: dict) -> dict:
    """Return what of a display can do nothing in a page: a picture rather than HTML."""
    words = _joined(data.get("text/plain", ""))
    kept = {"text/plain": words} if words else {}
    for kind, is_one in _PICTURES.items():
        if kind in data and is_one(_joined(data[kind])):
            return kept | {kind: _joined(data[kind])}
    page = _joined(data.get("text/html", ""))
    if len(page) > _MOST_HTML:
        return kept or {"text/plain": f"A page of {len(page):,} characters."}
    if page:
        page = _without_code(page)
        kept["text/html"] = bleach.clean(page, _TAGS.split(), _SPANS, strip=True)
    return kept


def _without_code(page):
    """Return a page without its scripts and styles, in time that grows as it does."""
    kept, at = [], 0
    while opening := _OPENS.search(page, at):
        kept.append(page[at : opening.start()])
        closing = _CLOSES[opening[1].lower()].search(page, opening.end())
        if closing is None:  # nor does any of those that follow end
            return "".join(kept)
        at = closing.end()
    return "".join([*kept, page[at:]])


def inert_text(source: str) -> str:
    """Return Markdown without tags and scripts; other text looks as before."""
    return _SCRIPT.sub(r"\1 :", _HIDDEN.sub("&amp;", _TAG.sub("&lt;", source)))


def writable(outputs: list) -> list:
    """Return outputs without halves of characters, which no file can hold."""
    told = json.dumps(outputs, ensure_ascii=False)
    return json.loads(told.encode(errors="replace"))


def _joined(value):
    """Return a text that may be a list of lines."""
    return "".join(value) if isinstance(value, list) else str(value)
