"""Whether an SVG only draws: shapes and text, and nothing that a page would run."""

import re

__all__ = ["only_draws"]

_TAG = re.compile(r"<(/?)([a-zA-Z]+)((?:\s+[a-zA-Z-]+=\"[^\"<>&]*\")*)\s*/?>")
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)=\"([^\"]*)\"")
_STYLE = re.compile(r"<style>([^<]*)</style>")
_TAGS = ("svg", "g", "path", "rect", "circle", "line", "text", "title", "style")
_TAGS += ("clipPath",)
_ATTRIBUTES = ("viewBox", "width", "height", "role", "class", "id", "d", "transform")
_ATTRIBUTES += ("x", "y", "cx", "cy", "r", "rx", "opacity", "fill", "stroke")
_ATTRIBUTES += ("font-size", "text-anchor", "clip-path", "data-sent", "data-bar")
_SPACE = "http://www.w3.org/2000/svg"
_FETCHES = re.compile(r"url\((?!#)|[@\\:]", re.IGNORECASE)
_RULES = re.compile(r"url\(|[@\\]|expression|binding|behavior", re.IGNORECASE)


def only_draws(svg: str) -> bool:
    """Return whether it is one that `distlab.show` could have drawn.

    What is allowed is listed, so what is not known is refused: links, other elements,
    handlers, declarations, and styles that fetch something.
    """
    if not (svg.startswith("<svg ") and svg.endswith("</svg>")):
        return False
    between = _TAG.sub("", svg)
    if "<" in between or ">" in between:
        return False
    tags = _TAG.findall(svg)
    styles = _STYLE.findall(svg)
    if sum(name == "style" for _, name, _ in tags) != 2 * len(styles):
        return False
    return all(
        name in _TAGS and all(_fits(*each) for each in _ATTRIBUTE.findall(attributes))
        for _, name, attributes in tags
    ) and not any(map(_RULES.search, styles))


def _fits(name, value):
    if name == "xmlns":
        return value == _SPACE
    return name in _ATTRIBUTES and not _FETCHES.search(value)
