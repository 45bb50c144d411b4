"""Pictures of quorums, of consistency models, and of latency against availability."""

import itertools

import pytest
from artists import assert_legible, drawn, words

from distlab.errors import InvalidArgument
from distlab.show import models, quorums, tradeoff

STORES = {
    "majority": (0.04, 0.0, "linearizable"),
    "primary, read any": (0.01, 0.5, "session guarantees, but not read your writes"),
    "any replica": (0.0, 1.0, "session guarantees"),
    "any replica, too": (0.0, 1.0, "session guarantees"),
}
SIZES = [
    (n, w, r)
    for n in range(1, 5)
    for w, r in itertools.product(range(1, n + 1), repeat=2)
]


def test_quorums_share_as_few_replicas_as_any_two_can():
    for n, w, r in SIZES:
        least = min(
            len({*a} & {*b})
            for a in itertools.combinations(range(n), w)
            for b in [range(n - r, n)]
        )
        picture = quorums(n, writes=w, reads=r)
        assert ("can miss" in picture.alt) == (least == 0)
        if least:
            assert f"at least {least} replica" in picture.alt


@pytest.mark.parametrize("n, w, r", [(1, 1, 1), (3, 2, 2), (5, 2, 3), (9, 1, 9)])
def test_every_replica_is_drawn_and_legible(n, w, r):
    picture = quorums(n, writes=w, reads=r, title="Quorums")
    assert len(drawn(picture, "replica")) == n
    assert {*map(str, range(n))} <= {*words(picture)}
    assert_legible(picture)


@pytest.mark.parametrize("n, w, r", [(0, 1, 1), (10, 5, 5), (3, 4, 2), (3, 2, 0)])
def test_quorums_that_are_none_are_refused(n, w, r):
    with pytest.raises(InvalidArgument, match=r"replicas"):
        quorums(n, writes=w, reads=r)


def test_each_model_stands_once_under_those_that_imply_it():
    picture = models(title="Models")
    assert words(picture).count("causal") == 1
    assert "linearizable implies sequential." in picture.alt
    assert "causal, read your writes." in picture.alt, "sticky available"
    assert_legible(picture)


def test_a_point_for_each_store_with_its_numbers_in_words():
    picture = tradeoff(STORES, title="Stores")
    assert len(drawn(picture, "store")) == len(STORES)
    assert "majority: 40 ms, 0%, linearizable." in picture.alt
    assert "any replica, too: 0 s, 100%" in picture.alt
    assert_legible(picture)


@pytest.mark.parametrize(
    "stores", [{}, [1], {"a": (1, 2)}, {"a": (-1, 0, "x")}, {"a": ("1", 0, "x")}]
)
def test_what_is_no_store_is_refused(stores):
    with pytest.raises(InvalidArgument, match="For example"):
        tradeoff(stores)
