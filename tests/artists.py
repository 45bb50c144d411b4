"""What a picture has in it: its artists, its words and its pixels."""

import base64
import io
import itertools
import re
import sys
import warnings
from xml.etree import ElementTree

from distlab.show.canvas.matplotlib_page import figure_of
from distlab.show.canvas.text import width_of

# in a page: [class, words, contrast to what is behind them] of all that is written
CONTRASTS = """root => {
    const settings = { willReadFrequently: true };
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', settings);
    const rgba = color => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
    };
    const light = color => {
        const [r, g, b] = [...rgba(color)].map(c => c / 255)
            .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = element => {
        if (element.classList.contains('num'))
            return getComputedStyle(element.previousElementSibling).fill;
        for (let at = element; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if (rgba(color)[3] === 255) return color;
        }
        return 'white';
    };
    const found = [];
    for (const element of root.querySelectorAll('*')) {
        const texts = [...element.childNodes].filter(n => n.nodeType === 3);
        const own = texts.filter(n => n.data.trim());
        const seen = element.checkVisibility({ visibilityProperty: true });
        if (!own.length || !seen) continue;
        const style = getComputedStyle(element), svg = element instanceof SVGElement;
        const [a, b] = [light(svg ? style.fill : style.color), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const name = element.getAttribute('class') || element.tagName;
        found.push([name, own[0].data, ratio]);
    }
    return found;
}"""


def drawn(picture, gid):
    return picture.figure.findobj(lambda artist: artist.get_gid() == gid)


def boxes(picture, gid):
    """Return the ends (left, low, right, high) of every bar called `gid`."""
    paths = [path for bars in drawn(picture, gid) for path in bars.get_paths()]
    corners = [path.vertices for path in paths]
    return [(*points.min(axis=0), *points.max(axis=0)) for points in corners]


def texts(picture):
    found = picture.figure.findobj(sys.modules["matplotlib.text"].Text)
    return [text for text in found if text.get_text() and text.get_visible()]


def words(picture):
    return [text.get_text() for text in texts(picture)]


def pixels(picture):
    from matplotlib.image import imread

    data = base64.b64decode(picture._repr_mimebundle_()["image/png"])
    return (imread(io.BytesIO(data))[:, :, :3] * 255).round().astype(int)


def assert_legible(picture):
    """Hold at each width that no text overlaps another or is cut by the page's edge."""
    for canvas in picture.canvases():
        _assert_apart(figure_of(canvas), canvas.edge)


def _assert_apart(figure, edge):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    found = figure.findobj(sys.modules["matplotlib.text"].Text)
    page, wide = figure.bbox, f"at {figure.get_figwidth()} inches"
    left, right = page.x0 + edge * figure.dpi, page.x1 - edge * figure.dpi
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        placed = [(t.get_text(), t.get_window_extent(renderer)) for t in found]
    placed = [(text, box) for text, box in placed if text]
    for text, box in placed:
        assert left <= box.x0 and box.x1 <= right, f"{text!r} is cut {wide}"
        assert page.y0 <= box.y0 and box.y1 <= page.y1, f"{text!r} is cut {wide}"
    placed.sort(key=lambda each: each[1].y0)
    for at, (one, a) in enumerate(placed):
        for other, b in itertools.takewhile(
            lambda each, top=a.y1: each[1].y0 < top - 1, placed[at + 1 :]
        ):
            over = min(a.x1, b.x1) - max(a.x0, b.x0)
            assert over <= 1, f"{one!r} lies on {other!r} {wide}"


DRAWING = re.compile(r'<svg class="w\d" viewBox.*?</svg>', re.DOTALL)


def ill_placed(html):
    """Return the words of a page's pictures that are cut off, or below 11 pixels.

    At each of their widths, where they are drawn 1 to 1.
    """
    found = []
    for drawing in map(ElementTree.fromstring, DRAWING.findall(html)):
        left, _, wide, _ = map(float, drawing.get("viewBox").split())
        for text in drawing.iter("text"):
            size, x = float(text.get("font-size")), float(text.get("x"))
            bold, mono = bool(text.get("font-weight")), text.get("class") == "m"
            length = 96 * width_of(text.text, 0.75 * size, bold, mono)
            x -= {"middle": length / 2, "end": length}.get(text.get("text-anchor"), 0)
            if x < left or x + length > left + wide or size < 11:
                found.append((wide, text.text, size))
    return found


# The words on the open view of a player, and where they are on the screen.
TEXTS = """root => [...root.querySelectorAll('.run svg:not(.off) text:not(.lit text)')]
    .map(text => [text.textContent, text.getBoundingClientRect(), text])
    .filter(([words, , text]) => words
        && text.checkVisibility({ visibilityProperty: true }))
    .map(([words, box]) => [words, box.left, box.top, box.right, box.bottom])"""


def overlapping(texts):
    """Return the words that lie on each other; letters leave room above and below."""
    found = []
    for at, (one, l0, t0, r0, b0) in enumerate(texts):
        for other, l1, t1, r1, b1 in texts[at + 1 :]:
            inside = min(r0, r1) - max(l0, l1) > 1 and min(b0, b1) - max(t0, t1) > 3
            if inside:
                found.append((one, other))
    return found
