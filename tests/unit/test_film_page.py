"""The page of a film needs nothing else, and shows words as words."""

import base64
import io
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.dom import minidom

import pytest
from PIL import Image, ImageChops

from distlab.errors import InvalidArgument
from distlab.show import compare, player, save
from distlab.show.assets import document
from distlab.show.player.animation import Animation
from distlab.show.player.still import frame_svg
from distlab.trace import Event, Shares, Trace

# what a browser would run, or fetch, or break on, if it were not text
HOSTILE = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "</title></style></svg><img src=x onerror=window.pwned=1>",
    "\" onload='window.pwned=1' x=\"",
    "<!--<script>",
    "a\u2028b\u2029c",
    "&lt;b&gt; &#39; ${window.pwned=1} `x` \\u003c",
    "\x00\x07\x1b[31m \ud800 \ufffe",
    "]]>" + "w" * 500,
]


def event(rank, start, end, kind, peer=None, size=0, label="", step=1):
    return Event(rank, start, end, kind, peer, size, step, label)


def ring(n=4, rounds=6, label="reduce-scatter, step {}"):
    events = []
    for step in range(rounds):
        for rank in range(n):
            at = step, step + 0.5
            events.append(event(rank, step, step, "mark", label=label.format(step + 1)))
            events.append(event(rank, *at, "send", (rank + 1) % n, 40, step=step + 1))
            events.append(event(rank, *at, "recv", (rank - 1) % n, 40, step=step + 1))
    return Trace(n, events)


def hostile(word):
    """Return a trace that says `word` wherever words can be."""
    events = [event(0, 0, 0, "mark", label=word), event(1, 0, 0, "mark", label=word)]
    events += [event(0, 1, 2, "send", 1, 8), event(1, 1, 2, "recv", 0, 8)]
    events += [event(r, 3, 4, "collective", label=word) for r in range(2)]
    events += [event(1, 5, 5, "fault", label=word)]
    events += [event(0, 6, None, "collective", label=word)]
    return Trace(2, events, cut_s=7)


def followed(*counts):
    held = [[(0, ((1, 0), (1, 0))), (1, tuple(counts))], [(0, ((0, 1), (0, 1)))]]
    events = [event(1, 0, 1, "send", 0, 16), event(0, 0, 1, "recv", 1, 16)]
    return Trace(2, events, shares=Shares([0, 2, 4], held, {}))


TRACES = {f"hostile {k}": hostile(word) for k, word in enumerate(HOSTILE)}
TRACES |= {f"ring of {n}": ring(n, 2) for n in (2, 3, 8, 13, 65)}
TRACES |= {"nobody": Trace(0), "empty": Trace(3), "alone": Trace(1)}
TRACES |= {"shares": followed((1, 1), (2, 0)), "no sum": followed(None, (1, 1))}
TRACES["backwards"] = Trace(
    2, [event(0, 5, 2, "send", 1, 8), event(1, 9, -3, "barrier")]
)
TRACES["deadlock"] = Trace(
    3, [event(r, r, None, "recv", (r + 1) % 3) for r in range(3)]
)
every = pytest.mark.parametrize("name", TRACES)


class Page(HTMLParser):
    """The tags, words and scripts of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.scripts, self.open = [], "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts.append(data)
        elif "style" not in self.open:
            self.words += data


def data_of(html):
    _, script = Page(html).scripts
    text = re.search(r"const runs=(\[.*\]);for\(", script).group(1)
    return json.loads(text, parse_constant=pytest.fail)


def ids(html):
    return [
        a[key] for _, a in Page(html).tags for key in ("id", "data-distlab") if key in a
    ]


# ---- alone ----------------------------------------------------------------------


@every
def test_a_page_asks_for_nothing_from_elsewhere(name):
    text = document(player(TRACES[name], "ring").html(), "ring")
    left = text.replace("http://www.w3.org/2000/svg", "")
    for word in (
        "://",
        "import(",
        "import ",
        "fetch(",
        "XMLHttp",
        "@import",
        "WebSocket",
    ):
        assert word not in "".join(Page(left).scripts) + "".join(
            re.findall("<style.*?</style>", left)
        )
    for tag, attributes in Page(text).tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "foreignobject")
        assert not {"src", "href", "xlink:href", "action"} & set(attributes)


@every
def test_the_data_are_json_and_say_what_the_film_says(name):
    animation = Animation(TRACES[name])
    (data,) = data_of(player(TRACES[name]).html())
    assert [frame["t"] for frame in data["frames"]] == [
        f.title for f in animation.frames
    ]
    assert [frame["x"] for frame in data["frames"]] == [
        f.text for f in animation.frames
    ]
    assert data["sent"] == [f.sent for f in animation.frames]
    counts = [len(frame["m"]) for frame in data["frames"]]
    assert counts == [len(f.moves) for f in animation.frames]


def test_two_players_share_no_id():
    one, other = (player(ring()).html() for _ in range(2))
    assert len(ids(one)) == len({*ids(one)}) >= 2
    assert not {*ids(one)} & {*ids(other)}
    both = ids(compare(ring(), ring(4, 5)).html())
    assert len(both) == len({*both})


def test_every_rule_of_the_style_is_kept_to_the_player():
    shown = player(ring()).html()
    style = re.search("<style data-once>(.*?)</style>", shown, re.DOTALL).group(1)
    style = re.sub(r":is\(.*?\)|:not\(.*?\)", "", style)
    style = re.sub(r"@\w+[^{]*\{((?:[^{}]*\{[^}]*\})*)\s*\}", r"\1", style)
    names = re.findall(r"([^{}]+)\{[^}]*\}", style)
    assert len(names) > 50
    assert all(".distlab-player" in part for name in names for part in name.split(","))


# ---- words ----------------------------------------------------------------------


@pytest.mark.parametrize("word", HOSTILE)
def test_words_are_shown_as_words_and_add_no_tag(word):
    made = player(hostile(word), word, bound_bytes=9, bound_label=word)
    plain = player(hostile("word"), "word", bound_bytes=9, bound_label="word")
    text = document(made.html(), made.animation.title)
    page, expected = Page(text), Page(document(plain.html(), "word"))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in expected.tags]
    names = [sorted(attributes) for _, attributes in page.tags]
    assert names == [sorted(attributes) for _, attributes in expected.tags]
    last = made.animation.frames[-1]
    assert all(w in page.words for w in (made.animation.title, last.title, last.text))
    assert len(page.scripts) == 2 and "<!--" not in text
    assert "\u2028" not in text and "\u2029" not in text


@pytest.mark.parametrize("word", HOSTILE)
def test_names_of_two_runs_are_words_too(word, tmp_path):
    made = compare(hostile(word), hostile("other"), word, names=(word, "b"))
    plain = compare(hostile("word"), hostile("other"), "word", names=("a", "b"))
    tags = [tag for tag, _ in Page(made.html()).tags]
    assert tags == [tag for tag, _ in Page(plain.html()).tags]
    for kind in ("html", "svg"):
        made.save(tmp_path / f"two.{kind}")
    minidom.parse(str(tmp_path / "two.svg"))


def test_the_label_of_the_page_tells_the_whole_run():
    page = Page(player(ring(), "A ring").html())
    labels = [a["aria-label"] for _, a in page.tags if "aria-label" in a]
    (whole,) = [label for label in labels if "Round" in label or "step 6" in label]
    assert "Every rank sends 240 B." in whole
    assert all(a.get("aria-label") for tag, a in page.tags if tag == "input")


# ---- stills ---------------------------------------------------------------------


@every
def test_stills_are_well_formed_and_described(name):
    made = player(TRACES[name], "A <b>title</b>", bound_bytes=50)
    drawings = [made.strip(), compare(TRACES[name], TRACES[name]).strip()]
    for number in range(len(made.animation.frames)):
        drawings += [
            frame_svg(made.animation, number, part) for part in (0.1, 0.9, 1.0)
        ]
    for drawing in drawings:
        root = minidom.parseString(drawing).documentElement
        assert root.tagName == "svg" and root.getAttribute("role") == "img"
        assert root.getElementsByTagName("title")[0].firstChild.data.strip()
        assert "nan" not in drawing and "inf" not in re.sub(
            "[a-z]*inf[a-z]+", "", drawing
        )


def colors_in(image):
    return {color for _, color in image.convert("RGB").getcolors(1 << 24)}


@pytest.mark.parametrize(
    "name", ["ring of 8", "empty", "nobody", "hostile 0", "no sum"]
)
def test_a_png_opens_and_is_not_blank(name, tmp_path):
    save(TRACES[name], tmp_path / "film.png", "A title")
    image = Image.open(tmp_path / "film.png")
    assert image.format == "PNG" and min(image.size) > 300
    assert len(colors_in(image)) > 10


def test_a_png_has_the_colours_of_its_ranks(tmp_path):
    save(ring(6, 3), tmp_path / "film.png")
    found = colors_in(Image.open(tmp_path / "film.png"))
    for color in ("0072B2", "E69F00", "009E73", "CC79A7", "56B4E9", "D55E00"):
        rgb = bytes.fromhex(color)
        assert (
            min(max(abs(a - b) for a, b in zip(rgb, c, strict=True)) for c in found) < 6
        )


def test_a_gif_moves_stands_at_every_stop_and_plays_for_ever(tmp_path):
    save(ring(3, 2), tmp_path / "film.gif", "A ring")
    image = Image.open(tmp_path / "film.gif")
    assert image.format == "GIF" and image.info["loop"] == 0
    shown_steps = len(Animation(ring(3, 2)).frames)
    assert image.n_frames > shown_steps
    pictures, waits = [], []
    for number in range(image.n_frames):
        image.seek(number)
        pictures.append(image.convert("RGB"))
        waits.append(image.info["duration"])
    assert sum(wait > 300 for wait in waits) == shown_steps
    pairs = itertools.pairwise(pictures)
    assert (
        sum(bool(ImageChops.difference(a, b).getbbox()) for a, b in pairs)
        >= shown_steps
    )


BEGINNINGS = {".html": b"<!doctype html>", ".svg": b"<svg", ".png": b"\x89PNG"}
BEGINNINGS |= {".gif": b"GIF89a", ".HTML": b"<!doctype html>"}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_film_is_saved_by_suffix(tmp_path, kind):
    save(ring(2, 1), str(tmp_path / f"ring{kind}"), "A ring", shape="circle")
    assert (tmp_path / f"ring{kind}").read_bytes().startswith(BEGINNINGS[kind])


@pytest.mark.parametrize(
    "name", ["ring.jpeg", "ring", "ring.", "html", "ring.html.zip"]
)
def test_another_suffix_is_refused_by_name_and_writes_nothing(tmp_path, name):
    with pytest.raises(
        InvalidArgument, match=r"\.html, \.svg, \.png or \.gif"
    ) as raised:
        save(ring(2, 1), tmp_path / name)
    assert name in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bound", ["96 kB", -1, float("nan"), float("inf"), True, 1j])
def test_a_bound_that_is_no_number_is_refused(bound):
    with pytest.raises(InvalidArgument, match="bound_bytes"):
        player(ring(), bound_bytes=bound)


@pytest.mark.parametrize("thing", [None, 3, [], "trace"])
def test_what_carries_no_trace_is_refused_with_its_kind(thing):
    with pytest.raises(InvalidArgument, match=type(thing).__name__):
        player(thing)


def test_a_player_shows_itself_as_html_png_and_words():
    made = player(ring(), "A ring")
    bundle = made._repr_mimebundle_()
    assert bundle["text/plain"] == repr(made) == made.alt
    assert len(data_of(bundle["text/html"])[0]["frames"]) == 7
    assert Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).width > 600


def test_a_page_of_many_events_stays_small_enough_for_a_notebook():
    assert len(player(ring(8, 417)).html()) < 3e6


def test_a_run_on_several_nodes_says_how_far_their_clocks_agree():
    here, there = ring(), replace(ring(), clock_error_s=0.0003)
    said = "Clocks of different nodes agree within 300 µs."
    assert f'<div class="notes">{said}</div>' in player(there).html()
    assert said in player(there).alt and "Clocks" not in player(here).html()
