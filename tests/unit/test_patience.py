"""DISTLAB_PATIENCE multiplies the limits after which distlab gives up."""

import math

import pytest

from distlab import InvalidArgument, run
from distlab.checks.kit import ranks
from distlab.launch.world import check_timeout
from distlab.patience import limit_in_words, more_patience, patience


@pytest.fixture
def factor(monkeypatch):
    return lambda value: monkeypatch.setenv("DISTLAB_PATIENCE", value)


def test_a_limit_is_multiplied_and_told_with_what_it_is_made_of(factor, monkeypatch):
    factor("3")
    assert patience(2) == 6 and patience(math.inf) == math.inf
    assert limit_in_words(2, "timeout_s") == "6 s (timeout_s=2, DISTLAB_PATIENCE=3)"
    assert limit_in_words(60) == "180 s (DISTLAB_PATIENCE=3)"
    assert "DISTLAB_PATIENCE=9 in the environment" in more_patience()
    factor("0.5")
    assert patience(60) == 30
    monkeypatch.delenv("DISTLAB_PATIENCE")
    assert patience(2) == 2 and limit_in_words(2, "timeout_s") == "2 s"
    assert "DISTLAB_PATIENCE=3 in the environment" in more_patience()


@pytest.mark.parametrize("value", ["0", "-1", "soon", "", "nan", "inf"])
def test_a_bad_value_is_named_before_anything_starts(factor, value):
    factor(value)
    with pytest.raises(InvalidArgument, match=f"DISTLAB_PATIENCE is '{value}'.* above"):
        check_timeout(60)
    with pytest.raises(InvalidArgument, match="DISTLAB_PATIENCE"):
        run(print, 2)


def test_a_run_of_a_check_has_its_seconds_or_what_is_left_of_the_step(
    factor, monkeypatch
):
    factor("2")
    assert ranks.seconds() == 60
    monkeypatch.setenv("DISTLAB_CHECK_SECONDS", "4")
    assert ranks.seconds() == 8
    with ranks.until(5):
        assert ranks.seconds() <= 5
