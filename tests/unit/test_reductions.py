"""Reductions, chunks and what finds the algorithms: one process, no messages."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from distlab import InvalidArgument, collectives
from distlab.collectives import AVERAGE, MAX, MIN, PRODUCT, SUM
from distlab.collectives.chunks import (
    chunk_edges,
    chunk_lengths,
    copy_of,
    room_for,
    room_like,
    split,
)

COLLECTIVES = ["broadcast", "reduce", "all_reduce", "gather", "all_gather"]
COLLECTIVES += ["scatter", "reduce_scatter", "all_to_all", "barrier"]
ORACLES = [
    (SUM, np.add, torch.add),
    (MAX, np.maximum, torch.maximum),
    (MIN, np.minimum, torch.minimum),
    (PRODUCT, np.multiply, torch.mul),
    (AVERAGE, np.add, torch.add),
]
NAMES = [str(op) for op, *_ in ORACLES]


@pytest.mark.parametrize(("op", "of_numpy", "of_torch"), ORACLES, ids=NAMES)
def test_combining_is_in_place_and_equals_the_librarys_own(op, of_numpy, of_torch):
    first, second = np.array([1.5, -2, 3]), np.array([0.5, 4, np.inf])
    for dtype in (np.float32, np.float64, np.int64):
        a, b = (np.nan_to_num(x).clip(-9, 9).astype(dtype) for x in (first, second))
        expected, whole = of_numpy(a, b), a
        op.combine(a, b)
        assert whole is a and np.array_equal(a, expected) and a.dtype == dtype
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        a, b = torch.tensor(first).to(dtype), torch.tensor(second).to(dtype)
        expected, memory = of_torch(a, b), a.data_ptr()
        op.combine(a, b)
        assert a.data_ptr() == memory and torch.equal(a, expected)


@pytest.mark.parametrize("op", [MAX, MIN, SUM])
def test_not_a_number_from_any_rank_stays(op):
    for a, b in ((np.nan, 1.0), (1.0, np.nan)):
        array, tensor = np.array([a]), torch.tensor([a])
        op.combine(array, np.array([b]))
        op.combine(tensor, torch.tensor([b]))
        assert np.isnan(array[0]) and tensor.isnan().item()


def test_only_the_average_has_something_to_finish():
    for op in (SUM, MAX, MIN, PRODUCT, AVERAGE):
        array, tensor = np.array([6.0]), torch.tensor([6.0])
        op.finish(array, 4)
        op.finish(tensor, 4)
        expected = 1.5 if op is AVERAGE else 6
        assert array[0] == tensor.item() == expected


def test_whole_numbers_have_no_average():
    for tensor in (np.zeros(2, np.int64), torch.zeros(2, dtype=torch.int32)):
        with pytest.raises(InvalidArgument, match=r"the average of int\d\d numbers"):
            AVERAGE.check(tensor)
        assert SUM.check(tensor) is None
    assert AVERAGE.check(torch.zeros(1, dtype=torch.bfloat16)) is None
    assert AVERAGE.check(np.zeros(1, np.complex64)) is None


def test_reductions_say_their_names():
    assert [repr(op) for op, *_ in ORACLES] == [
        "SUM",
        "MAX",
        "MIN",
        "PRODUCT",
        "AVERAGE",
    ]


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("count", [0, 1, 3, 16, 23])
def test_chunks_are_as_numpys_array_split_cuts_them(count, parts):
    expected = [len(part) for part in np.array_split(np.zeros(count), parts)]
    assert chunk_lengths(count, parts) == expected
    assert np.diff(chunk_edges(count, parts)).tolist() == expected
    for thing in (np.arange(count), torch.arange(count)):
        views = split(thing, parts)
        assert [len(view) for view in views] == expected
        for view in views:
            view[...] = -1
        assert bool((thing == -1).all())


def test_rooms_and_copies_have_their_own_memory_and_the_same_type():
    for thing in (np.ones((2, 3), np.float32), torch.ones(2, 3, dtype=torch.bfloat16)):
        copy, room, flat = copy_of(thing), room_like(thing), room_for(thing, 5)
        assert copy.dtype == room.dtype == flat.dtype == thing.dtype
        assert copy.shape == room.shape == thing.shape and flat.shape == (5,)
        copy[...] = 2
        assert bool((thing == 1).all())


def test_every_algorithm_is_found_by_its_name():
    found = {
        name: function
        for collective in COLLECTIVES
        for name, function in collectives.variants(collective).items()
    }
    assert set(found) <= set(collectives.__all__) <= set(dir(collectives))
    assert all(getattr(collectives, name) is found[name] for name in found)
    assert all(function.__name__ == name for name, function in found.items())
    assert "ring_all_gather" not in collectives.variants("gather")
    assert "tree_all_reduce" not in collectives.variants("reduce")
    assert "ring_reduce_scatter" not in collectives.variants("scatter")


def test_a_new_file_is_a_new_algorithm(tmp_path, monkeypatch):
    (tmp_path / "star.py").write_text(
        "__all__ = ['helper', 'star_all_reduce']\n"
        "def star_all_reduce(comm, tensor): pass\n"
        "def helper(): pass\n"
    )
    monkeypatch.setattr(collectives, "__path__", [*collectives.__path__, str(tmp_path)])
    assert collectives.star_all_reduce.__module__ == "distlab.collectives.star"
    assert "star_all_reduce" in collectives.variants("all_reduce")
    assert not hasattr(collectives, "helper")
    del collectives.star_all_reduce
    monkeypatch.delitem(sys.modules, "distlab.collectives.star")


def test_algorithms_use_nothing_but_comm_and_each_other():
    orders = "distlab.cost.two_trees", "distlab.cost.multi_ring"
    allowed = "distlab.collectives", "distlab.errors", *orders
    for path in Path(collectives.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("distlab"):
                assert node.module.startswith(allowed)


def test_arrays_are_combined_without_loading_torch():
    code = (
        "import sys, numpy\n"
        "from distlab import collectives, cost\n"
        "from distlab.collectives import *\n"
        "class Alone: rank, world_size = 0, 1; mark = print\n"
        "array = numpy.arange(6.0)\n"
        "for op in (SUM, MAX, MIN, PRODUCT, AVERAGE):\n"
        "    op.combine(array, array)\n"
        "    for function in variants('all_reduce').values():\n"
        "        if 'hierarchical' not in function.__name__:\n"
        "            function(Alone(), array, op=op)\n"
        "cost.ring_all_reduce(4, 40)\n"
        "print([name for name in sys.modules if name == 'torch'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
