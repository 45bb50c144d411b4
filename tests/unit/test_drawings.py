"""Pictures in a submission's output draw, or are left out."""

import pytest
from traces import CRASHED, KILLED, SPLIT, ring_trace

from distlab.collectives import ring_all_reduce
from distlab.grading.marking.drawings import only_draws
from distlab.grading.marking.outputs import inert
from distlab.launch import follow
from distlab.links import Link
from distlab.show import compare, player
from distlab.simulated import Uniform

_SPACE = "http://www.w3.org/2000/svg"


def _svg(body, more=""):
    return f'<svg xmlns="{_SPACE}" viewBox="0 0 9 9"{more}>{body}</svg>'


def test_a_plain_drawing_draws():
    body = '<style>.a{fill:#FFF}</style><g class="a"><text x="1">a@b: url(x)</text></g>'
    assert only_draws(_svg(body))
    assert inert({"image/svg+xml": _svg(body), "image/png": "aGk="}) == {
        "image/svg+xml": _svg(body)
    }


@pytest.mark.parametrize(
    "svg",
    [
        _svg("<script>x()</script>"),
        _svg("", ' onload="x()"'),
        _svg("", " onload=x()"),
        _svg("", " onload = 'x()'"),
        _svg('<g ONLOAD="x()"></g>'),
        _svg('<a href="javascript:x()"><text>a</text></a>'),
        _svg('<image href="http://x.org/"/>'),
        _svg('<use href="#a"/>'),
        _svg("<foreignObject><p>a</p></foreignObject>"),
        _svg('<animate attributeName="href" to="x"/>'),
        _svg('<g fill="url(http://x.org/)"></g>'),
        _svg('<g style="fill:red"></g>'),
        _svg("<style>@import 'http://x.org/';</style>"),
        _svg("<style>.a{fill:url(http://x.org/)}</style>"),
        _svg("<style>.a{fill:u\\72l(http://x.org/)}</style>"),
        _svg('<style media="all">@import "x";</style>'),
        _svg("<style>.a{}<!-- --></style>"),
        _svg("<![CDATA[<script>x()</script>]]>"),
        _svg("<!-- -->"),
        _svg("<?xml-stylesheet href='x'?>"),
        '<!DOCTYPE svg [<!ENTITY a "b">]>' + _svg("&a;"),
        _svg("") + "<script>x()</script></svg>",
        _svg("").replace(_SPACE, "http://www.w3.org/1999/xhtml"),
        _svg('<g/onload="x()">'),
        "<svg onload=x()//",
        _svg("<title><img src=x onerror=x()></title>"),
    ],
)
def test_what_a_page_would_run_or_fetch_does_not_draw(svg):
    assert not only_draws(svg)
    assert inert({"image/svg+xml": svg, "text/plain": "a"}) == {"text/plain": "a"}


LINKS = Uniform(Link(latency_s=1e-3, bytes_per_s=1e9))
TITLE = 'Yours & <i>mine</i>: a@b "c" url(http://x.org/)'


@pytest.mark.parametrize(
    "made",
    [
        player(ring_trace(5, 4), TITLE),
        player(ring_trace(4, 3), bound_bytes=100, bound_label="<bound>"),
        player(follow(ring_all_reduce, 4, numbers=8, fabric=LINKS)),
        compare(ring_trace(4, 3), ring_trace(4, 2), TITLE),
        player(KILLED, TITLE),
        player(SPLIT, TITLE),
        player(CRASHED),
        player(ring_trace(150, 3)),
    ],
    ids=repr,
)
def test_every_picture_of_a_run_is_kept(made, monkeypatch):
    monkeypatch.setenv("DISTLAB_STILLS", "svg")
    bundle = made._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    assert inert(bundle) == bundle
