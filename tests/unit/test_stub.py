"""A stub that is not written yet is its fallback, and says so."""

import pytest

from distlab import stub
from distlab.commands.exporting.statements import without_stubs
from distlab.errors import InvalidArgument


def double(x):
    """Return twice x."""
    return 2 * x


def only_dots(x):
    """Return twice x."""
    ...


def only_words(x):
    """Return twice x."""


def only_pass(x):
    pass


@pytest.mark.parametrize("function", [only_dots, only_words, only_pass])
def test_what_is_not_written_yet_is_the_fallback(function, capsys):
    assert stub(fallback=double)(function) is double
    said = f"{function.__name__} is not written yet, so distlab's is used.\n"
    assert capsys.readouterr().out == said


def one_number(x):
    return 1


def a_generator(x):
    yield


def an_error(x):
    raise ValueError


@pytest.mark.parametrize("function", [one_number, a_generator, an_error])
def test_what_is_written_is_used_even_if_it_is_wrong(function, capsys):
    assert stub(fallback=double)(function) is function
    assert function.__name__ in capsys.readouterr().out


def test_a_stub_without_a_function_to_fall_back_on_is_refused():
    with pytest.raises(InvalidArgument, match="fallback=ring_all_reduce"):
        stub(fallback=None)


CELL = '''
@stub(fallback=lib.double)
def twice(x):
    """Return twice x."""
    {body}


twice(2)
'''


def test_an_export_takes_what_the_run_takes():
    assert without_stubs(CELL.format(body="...")).split() == [
        *["twice", "=", "lib.double"],
        "twice(2)",
    ]
    written = without_stubs(CELL.format(body="return x + x"))
    assert "stub" not in written and "return x + x" in written
