"""Ranks sit as their messages connect them, on the stage, apart from each other."""

import itertools
import math

import pytest

from distlab.errors import InvalidArgument
from distlab.show import player
from distlab.show.player.animation import Animation
from distlab.show.player.geometry import Geometry
from distlab.show.player.rank_layout import SHAPES, WIDTH
from distlab.show.player.svg import marker
from distlab.trace import Event, Shares, Trace


def trace_of(pairs, n):
    events = []
    for at, (src, dst) in enumerate(sorted(pairs)):
        events.append(Event(src, at, at + 1, "send", dst, 8, 1, ""))
        events.append(Event(dst, at, at + 1, "recv", src, 8, 1, ""))
    return Trace(n, events)


def both(links):
    return {*links, *((b, a) for a, b in links)}


def ring(n):
    return {(rank, (rank + 1) % n) for rank in range(n)}


def star(n, hub=0):
    return both({(hub, rank) for rank in range(n) if rank != hub})


def binomial(n):
    links, distance = set(), 1
    while distance < n:
        links |= {(r, r - distance) for r in range(distance, n, 2 * distance)}
        distance *= 2
    return both(links)


def doubling(n):
    return {(r, r ^ 2**bit) for r in range(n) for bit in range(n.bit_length() - 1)}


def grid(tall, wide, around=False):
    links = set()
    for row, column in itertools.product(range(tall), range(wide)):
        if column + 1 < wide or around:
            links.add((row * wide + column, row * wide + (column + 1) % wide))
        if row + 1 < tall or around:
            links.add((row * wide + column, (row + 1) % tall * wide + column))
    return both({(a, b) for a, b in links if a != b})


def everyone(n):
    return {pair for pair in itertools.product(range(n), repeat=2) if len({*pair}) > 1}


# name -> (pairs, ranks, shape)
SITTING = {f"ring of {n}": (ring(n), n, "ring") for n in (2, 3, 4, 7, 8, 16, 64)}
SITTING |= {f"ring of {n}, both ways": (both(ring(n)), n, "ring") for n in (4, 5)}
SITTING |= {f"a chain of {n}": (both(ring(n) - {(n - 1, 0)}), n, "ring") for n in (4,)}
SITTING |= {f"star of {n}": (star(n), n, "tree") for n in (4, 5, 7, 8, 16, 20)}
SITTING |= {"star around rank 3": (star(6, 3), 6, "tree")}
SITTING |= {f"tree of {n}": (binomial(n), n, "tree") for n in (4, 6, 7, 8, 16, 32)}
SITTING |= {f"doubling of {n}": (doubling(n), n, "hypercube") for n in (4, 8, 16)}
SITTING |= {"2 by 3": (grid(2, 3), 6, "grid"), "3 by 4": (grid(3, 4), 12, "grid")}
SITTING |= {"3 by 4, rings": (grid(3, 4, True), 12, "grid")}
SITTING |= {f"everyone of {n}": (everyone(n), n, "circle") for n in (4, 5, 6, 12, 20)}
SITTING |= {f"nobody of {n}": (set(), n, "ring") for n in (0, 1, 4)}


@pytest.mark.parametrize("name", SITTING)
def test_the_shape_is_read_from_who_sends_to_whom(name):
    pairs, n, shape = SITTING[name]
    assert Animation(trace_of(pairs, n)).geometry.shape == shape


@pytest.mark.parametrize("name", SITTING)
@pytest.mark.parametrize("chunks", [0, 1, 4, 40])
def test_nodes_and_tables_stay_on_the_stage_and_nodes_apart(name, chunks):
    pairs, n, _ = SITTING[name]
    place = Geometry.of(pairs, n, chunks)
    assert len(place.nodes) == n
    for x, y in place.nodes:
        assert place.radius <= x <= WIDTH - place.radius
        assert place.radius <= y <= place.height - place.radius
    for a, b in itertools.combinations(place.nodes, 2):
        assert math.dist(a, b) >= 2 * place.radius
    wide, tall = place.cell
    for x, y in place.tables:
        assert x >= 0 and x + min(chunks, 16) * (wide + 2) - 2 <= WIDTH + 1e-6
        assert y >= 0 and y + tall <= place.height + 12


@pytest.mark.parametrize("name", SITTING)
def test_an_arrow_goes_from_the_edge_of_its_sender_to_that_of_its_receiver(name):
    pairs, n, _ = SITTING[name]
    place = Geometry.of(pairs, n, 0)
    assert set(place.ways) == pairs
    for (src, dst), (x0, y0, _, _, x1, y1) in place.ways.items():
        ends = (
            math.dist(place.nodes[src], (x0, y0)),
            math.dist(place.nodes[dst], (x1, y1)),
        )
        apart = math.dist(place.nodes[src], place.nodes[dst])
        assert all(min(place.radius, apart / 3) <= end < apart / 2 + 20 for end in ends)
        assert math.dist(place.nodes[src], (x0, y0)) < math.dist(
            place.nodes[dst], (x0, y0)
        )


@pytest.mark.parametrize("n", range(2, 17))
@pytest.mark.parametrize(
    "connect, cut", [(ring, True), (star, False), (binomial, False)]
)
def test_tables_of_a_ring_star_and_tree_cover_no_node_and_no_table(connect, cut, n):
    place = Geometry.of(connect(n), n, n if cut else 1)
    wide = (n if cut else 1) * (place.cell[0] + 2) - 2
    for (x, y), node in itertools.product(place.tables, place.nodes):
        near = min(max(node[0], x), x + wide), min(max(node[1], y), y + place.cell[1])
        assert math.dist(near, node) >= place.radius - 1
    for one, other in itertools.combinations(place.tables, 2):
        apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
        assert apart[0] >= wide or apart[1] >= place.cell[1]


def test_a_star_has_its_hub_in_the_middle_and_the_others_around_it():
    hub, *leaves = Geometry.of(star(7), 7, 0).nodes
    assert len({round(math.dist(hub, leaf), 6) for leaf in leaves}) == 1


def test_a_tree_has_its_root_on_top_and_children_below_their_parents():
    nodes = Geometry.of(binomial(8), 8, 0).nodes
    for child in range(1, 8):
        parent = child & (child - 1)
        assert nodes[child][1] > nodes[parent][1]


@pytest.mark.parametrize("n", [4, 6, 8])
@pytest.mark.parametrize("root", [1, 3])
def test_a_tree_of_one_direction_has_its_source_or_its_sink_on_top(n, root):
    down = {((a + root) % n, (b + root) % n) for a, b in binomial(n) if a < b}
    for pairs in (down, {(b, a) for a, b in down}):
        heights = [y for _, y in Geometry.of(pairs, n, 0).nodes]
        assert heights.index(min(heights)) == root
        assert all(heights[b] > heights[a] for a, b in down)


def test_a_star_of_one_direction_has_its_source_in_the_middle():
    nodes = Geometry.of({(2, rank) for rank in (0, 1, 3, 4)}, 5, 0, "tree").nodes
    assert nodes[2] == pytest.approx((WIDTH / 2, 225))


def test_rows_and_columns_of_a_grid_are_straight():
    nodes = Geometry.of(grid(3, 4), 12, 0).nodes
    assert len({round(x, 6) for x, _ in nodes}) == 4
    assert len({round(y, 6) for _, y in nodes}) == 3


def test_in_a_hypercube_neighbours_of_one_bit_are_one_step_apart():
    nodes = Geometry.of(doubling(8), 8, 0).nodes
    for bit in (1, 2, 4):
        steps = {
            tuple(
                round(b - a, 6) for a, b in zip(nodes[r], nodes[r | bit], strict=True)
            )
            for r in range(8)
            if not r & bit
        }
        assert len(steps) == 1


# ---- asked for ------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_is_asked_for_is_taken_where_it_fits(shape):
    made = player(trace_of(binomial(8), 8), shape=shape)
    assert made.animation.geometry.shape == shape and made.html()


@pytest.mark.parametrize("n", [1, 2, 5, 7, 12, 13])
@pytest.mark.parametrize("shape", ["ring", "grid", "circle"])
def test_ring_grid_and_circle_take_any_number_of_ranks(shape, n):
    nodes = player(
        trace_of(ring(n) - {(0, 0)}, n), shape=shape
    ).animation.geometry.nodes
    assert len({*nodes}) == n


REFUSED = {
    "a ring is no tree": (ring(4), 4, "tree", "form no tree"),
    "two trees are no tree": ({(0, 1), (2, 3)}, 4, "tree", "form no tree"),
    "six are no hypercube": (ring(6), 6, "hypercube", "2, 4, 8 or 16 ranks.*has 6"),
    "32 are no hypercube": (ring(32), 32, "hypercube", "this run has 32"),
    "another word": (ring(4), 4, "star", "'star'"),
    "no word": (ring(4), 4, None, "None"),
    "a number": (ring(4), 4, 3, "3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_shape_that_does_not_fit_is_refused_with_what_there_is(name):
    pairs, n, shape, words = REFUSED[name]
    with pytest.raises(InvalidArgument, match=words):
        player(trace_of(pairs, n), shape=shape)


@pytest.mark.parametrize("n, drawn", [(16, True), (17, False)])
def test_tables_are_drawn_for_up_to_sixteen_ranks_and_a_note_says_so(n, drawn):
    held = [[(0, ((0,) * n,))] for _ in range(n)]
    trace = trace_of(ring(n), n)
    trace.shares = Shares([0, 4], held, {})
    animation = Animation(trace)
    assert bool(animation.geometry.tables) == drawn
    assert any("up to 16 ranks" in note for note in animation.notes) != drawn


def test_ranks_of_one_color_have_marks_of_different_shapes():
    marks = [marker(rank, 0, 0, 10) for rank in (0, 6, 12)]
    assert all('class="f0"' in mark for mark in marks)
    assert marks[0].startswith("<circle")
    assert "rotate(0 " in marks[1] and "rotate(45 " in marks[2]
