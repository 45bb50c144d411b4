"""What `distlab export` takes along, what it refuses, and how the script looks."""

import ast
import builtins
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
from exported import notebook, script

import distlab.train
from distlab import DistlabError

TRAIN = "def train(*, steps=1):\n    return {}"


def script_of_cells(tmp_path, *cells):
    """Return the script of a notebook whose cells are called a, b, c and so on."""
    named = dict(zip("abcdefgh", cells, strict=False))
    return script(notebook(tmp_path / "lesson.ipynb", named))


def without_distlab(name, *rest):
    assert name.split(".")[0] != "distlab", "the script imports distlab"
    return builtins.__import__(name, *rest)


def loaded(text):
    """Return the names of a script that was run without its main, nor distlab."""
    blocked = {**vars(builtins), "__import__": without_distlab}
    namespace = {"__name__": "a_script", "__builtins__": blocked}
    exec(compile(text, "train.py", "exec"), namespace)
    return namespace


def trained(tmp_path, *cells):
    return loaded(script_of_cells(tmp_path, *cells))["train"]()


def refusal(tmp_path, *cells):
    with pytest.raises(DistlabError) as refused:
        script_of_cells(tmp_path, *cells)
    return str(refused.value)


def test_it_takes_what_the_function_needs_and_nothing_else(tmp_path):
    text = script_of_cells(
        tmp_path,
        "import math\nimport json\nfrom os import path, sep",
        "RATE = 3\nOTHER = 4\n\n\ndef half(x):\n    return x / 2",
        "def rate():\n    return half(RATE) * math.pi + len(sep)",
        "def unused():\n    return OTHER",
        "print(rate())",
        TRAIN.format("rate()"),
    )
    names = {name for name in loaded(text) if not name.startswith("__")}
    own = {"argparse", "os", "torch", "main"}
    assert names == {"math", "sep", "RATE", "half", "rate", "train"} | own


USES = {
    "a nested function": "def f():\n    def g():\n        return NEEDED\n"
    "    return g()",
    "a lambda": "f = lambda: NEEDED",
    "a comprehension": "def f():\n    return [NEEDED for _ in 'a'][0]",
    "a default": "def f(x=NEEDED):\n    return x",
    "a decorator": "@(lambda g: lambda: NEEDED)\ndef f():\n    pass",
    "a class": "class A:\n    x = NEEDED\n\ndef f():\n    return A.x",
    "a base": "class A(type(NEEDED)):\n    pass\n\ndef f():\n    return A(NEEDED)",
    "a method": "class A:\n    def x(self):\n        return NEEDED\n"
    "\ndef f():\n    return A().x()",
    "an f-string": "def f():\n    return int(f'{NEEDED}')",
    "an annotation": "def f(x: NEEDED = 7):\n    return x",
    "global": "def f():\n    global NEEDED\n    NEEDED += 0\n    return NEEDED",
    "a constant": "TWICE = 2 * NEEDED\nf = lambda: TWICE // 2",
    "one of two on a line": "x = 1; y = NEEDED\nf = lambda: y",
    "a block": "if True:\n    y = NEEDED\nf = lambda: y",
    "a pair": "x, (y, *z) = 1, (NEEDED, 2)\nf = lambda: y",
    "a walrus": "print(y := NEEDED)\nf = lambda: y",
}


@pytest.mark.parametrize("use", USES)
def test_a_name_is_found_in(use, tmp_path):
    assert trained(tmp_path, "NEEDED = 7", USES[use], TRAIN.format("f()")) == 7


SHADOWS = {
    "a parameter": "def f(NOT):\n    return NOT",
    "a local": "def f(_):\n    NOT = 1\n    return NOT",
    "a nonlocal": "def f(_):\n    NOT = 1\n    def g():\n        nonlocal NOT\n"
    "        NOT += 1\n    return g()",
    "an import": "def f(_):\n    import json as NOT\n    return NOT",
    "a loop": "def f(_):\n    return [NOT for NOT in 'a']",
    "an attribute": "class A:\n    NOT = 1\n\ndef f(_):\n    return A.NOT",
}


@pytest.mark.parametrize("shadow", SHADOWS)
def test_a_global_is_left_behind_that_is_hidden_by(shadow, tmp_path):
    cells = "NOT = 1 / 3", SHADOWS[shadow], TRAIN.format("f(1)")
    assert "1 / 3" not in script_of_cells(tmp_path, *cells)


def test_of_two_definitions_the_later_before_the_use_counts(tmp_path):
    cells = "A = 1", "A = 2", TRAIN.format("A"), "A = 3"
    assert trained(tmp_path, *cells) == 2
    cells = "def f():\n    return A", "A = 1", TRAIN.format("(A, f())"), "A = 3"
    assert trained(tmp_path, *cells) == (1, 1)
    cells = "A = 1\nB = A", "A = 2", TRAIN.format("(A, B)")
    assert trained(tmp_path, *cells) == (2, 1)
    cells = "A = 1\nclass B:\n    a = A", "C = [A for _ in 'c']", "A = 2"
    assert trained(tmp_path, *cells, TRAIN.format("(A, B.a, C)")) == (2, 1, [1])
    cells = TRAIN.format("later()"), "def later():\n    return 4"
    assert trained(tmp_path, *cells) == 4
    assert trained(tmp_path, TRAIN.format("1"), TRAIN.format("2")) == 2


def test_what_is_changed_in_place_arrives_changed(tmp_path):
    cells = "A = {}\nn = 1", "A['x'] = 5\nn += 2", TRAIN.format("(A['x'], n)")
    assert trained(tmp_path, *cells) == (5, 3)
    cells = "import torch", "torch.nn.mine = 8", TRAIN.format("torch.nn.mine")
    assert trained(tmp_path, *cells) == 8


def test_imports_that_share_a_name_come_together(tmp_path):
    cells = "import xml.dom", "import xml.sax\nimport json as xml_", "import xml.sax"
    both = TRAIN.format("(xml.dom.Node, xml.sax.parse)")
    text = script_of_cells(tmp_path, *cells, both)
    assert "import xml.dom\nimport xml.sax\n\n" in text and "json" not in text


def test_comments_and_docstrings_come_along(tmp_path):
    cell = (
        '# Why it is two.\nTWO = 2  # not three\n\n\ndef train():\n    """Say two."""'
    )
    cell += "\n    # It is returned.\n    return TWO"
    assert cell in script_of_cells(tmp_path, cell)


def test_future_imports_come_first(tmp_path):
    cells = "from __future__ import annotations", "def train(x: Missing = 1): return x"
    assert "Missing" in refusal(tmp_path, *cells)
    cells = "from __future__ import annotations", TRAIN.format("train.__annotations__")
    assert trained(tmp_path, *cells, "A: int = 3") == {}
    first = ast.parse(script_of_cells(tmp_path, *cells)).body[1]
    assert first.module == "__future__"


def test_cells_with_magics_are_left_out_and_named_when_missed(tmp_path):
    cells = "%matplotlib inline\nA = 1", "!ls", TRAIN.format("2")
    assert trained(tmp_path, *cells) == 2
    said = refusal(tmp_path, *cells[:2], TRAIN.format("A"))
    assert "cell c uses A, which is defined nowhere" in said
    assert "cell a, cell b" in said


NEEDS_DISTLAB = {
    "the launcher": ("from distlab import run", "run(print)", "cell c needs run"),
    "an engine": ("from distlab.engines import mpi", "mpi", "distlab.engines.mpi"),
    "a collective": (
        "from distlab.collectives import ring_all_reduce",
        "ring_all_reduce",
        "(imported in cell a), which is distlab.collectives.ring_all_reduce",
    ),
    "what needs a collective": (
        "from distlab.train.data_parallel import BucketedDataParallel",
        "BucketedDataParallel",
        "cell c needs BucketedDataParallel, and distlab/train/data_parallel.py needs "
        "ring_all_reduce",
    ),
    "the package": ("import distlab", "distlab.run", "by its own name"),
    "a module": ("from distlab.train import models", "models", "by its own name"),
    "an alias": ("from distlab.train.models import GPT as G", "G", "by its own name"),
    "nothing": ("from distlab.train.models import Gpt", "Gpt", "not in distlab.train"),
    "no module": ("from distlab.train.none import A", "A", "no module distlab.train"),
    "a hidden import": (
        "def f():\n    from distlab import run\n    return run",
        "f()",
        "cell a imports distlab inside another statement",
    ),
    "two meanings": (
        "from distlab.train.models import GPT\nclass Block: pass",
        "(GPT, Block)",
        "Block has two here",
    ),
    "our own name": ("def main(): pass", "main()", "main has two here"),
}


@pytest.mark.parametrize("what", NEEDS_DISTLAB)
def test_it_refuses_and_names(what, tmp_path):
    cell, use, said = NEEDS_DISTLAB[what]
    assert said in refusal(tmp_path, cell, "# nothing", TRAIN.format(use))
    trained(tmp_path, cell, TRAIN.format("0"))  # unused, it is left behind


def test_it_refuses_a_star_and_a_function_that_is_not_there(tmp_path):
    said = refusal(tmp_path, "from math import *", TRAIN.format("1"))
    assert "cell a" in said and "imports * from math" in said
    assert "no cell defines a function" in refusal(tmp_path, "train = 3")


@pytest.mark.parametrize(
    "signature",
    ["comm", "a: int", "*, steps", "*steps", "**steps", "*, steps=None", "steps=A"],
)
def test_it_refuses_a_parameter_that_no_option_can_set(signature, tmp_path):
    said = refusal(tmp_path, f"A = 1\ndef train({signature}):\n    return 1")
    assert "cell a: train has" in said and "def train(*, steps=200)" in said


def everything_public():
    for found in pkgutil.walk_packages(distlab.train.__path__, "distlab.train."):
        for name in importlib.import_module(found.name).__all__:
            yield found.name, name


@pytest.mark.parametrize("module, name", list(everything_public()))
def test_whatever_training_offers_works_alone_or_is_refused(module, name, tmp_path):
    cells = f"from {module} import {name}", TRAIN.format(name)
    try:
        text = script_of_cells(tmp_path, *cells)
    except DistlabError as refused:
        assert "Comm" in str(refused)
        return
    ours = getattr(importlib.import_module(module), name)
    taken = loaded(text)["train"]()
    assert type(taken) is type(ours)
    if inspect.isclass(ours):
        assert [*inspect.signature(taken).parameters] == [
            *inspect.signature(ours).parameters
        ]


def test_what_a_package_offers_comes_from_the_file_that_defines_it(tmp_path):
    cells = "from distlab.train.pipeline import gpipe", TRAIN.format("str(gpipe(2, 1))")
    assert trained(tmp_path, *cells) == "stage 0   F0 B0\nstage 1   F0 B0"


SETTINGS = """@dataclass
class Settings:
    none: int
    steps: int = 3  # "how" many %
    fast: bool = False

def train(given: Settings, *, again="no"):
    return given, again
"""


def test_settings_are_options_and_their_comments_the_help(
    tmp_path, monkeypatch, capsys
):
    cells = "from dataclasses import dataclass", SETTINGS
    script = loaded(script_of_cells(tmp_path, *cells))
    monkeypatch.setattr("sys.argv", ["train.py", "--help"])
    with pytest.raises(SystemExit):
        script["main"]()
    described = " ".join(capsys.readouterr().out.split())
    assert '--steps STEPS "how" many % (default: 3)' in described
    assert "--fast, --no-fast default: False" in described
    assert "--again AGAIN default: no" in described and "--none" not in described


def test_models_and_data_are_among_what_works_alone(tmp_path):
    cells = (
        "from distlab.train.data import ShardedSampler, digits\n"
        "from distlab.train.models import GPT, spell",
        TRAIN.format('(spell(GPT(), "a", 3), ShardedSampler, digits)'),
    )
    text, sampler, digits = trained(tmp_path, *cells)
    assert text[0] == "a"
    assert digits()[0].shape == (1797, 64)
    with pytest.raises(ValueError, match="rank 3 of 2"):
        sampler(5, 3, 2)


TIDY = """def train(job: Job, *, a_long_name_for_an_option="a value", x=-1e-3, y='"'):
    used = [f, nn, it, math, L, partial, GPT, spell, B, C]
    return used, a_long_name_for_an_option, x, y
"""


def test_linter_and_formatter_have_nothing_to_say(tmp_path):
    text = script_of_cells(
        tmp_path,
        "import torch.nn.functional as F\nfrom torch import nn, Tensor, no_grad\n"
        "import itertools as it, math\nfrom typing import List as L\n"
        "from functools import partial",
        "from distlab.train.job import Job\n"
        "from distlab.train.models import GPT, spell",
        "# The rate.\nA = 1\nB = 2",
        "C = A",
        "@no_grad()\ndef f(x: Tensor) -> Tensor:\n    return F.relu(x)",
        TIDY,
    )
    (tmp_path / "train.py").write_text(text)
    checks = ["check", "--isolated", "--select", "E,F,I", "--line-length", "100"]
    ruff = [sys.executable, "-m", "ruff"]
    done = subprocess.run(
        [*ruff, *checks, "train.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [*ruff, "format", "--isolated", "--diff", "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def export(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "distlab", "export", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
    )


def test_the_command_writes_once_and_prints(tmp_path):
    path = notebook(tmp_path / "mine.ipynb", {"a": TRAIN.format(5)})
    done = export(path, "--to", "new.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "new.py").read_text()
    assert loaded(written)["train"]() == 5 and "gpu new.py" in written
    assert "--force" in export(path, "--to", "new.py", cwd=tmp_path).stderr
    assert export(path, "--to", "new.py", "--force", cwd=tmp_path).returncode == 0
    assert export(path, "--to", "-", cwd=tmp_path).stdout == script(path)


def test_the_command_says_what_is_wrong(tmp_path):
    path = notebook(tmp_path / "mine.ipynb", {"a": TRAIN.format(5)})
    none = notebook(tmp_path / "none.ipynb", {"a": "x = 1"}, function=None)
    (tmp_path / "torn.ipynb").write_text('{"cells": [')
    for words, status, said in [
        (["no_such_lesson"], 2, "there is no lesson 'no_such_lesson'"),
        ([none], 1, "none has no training to take along"),
        ([tmp_path / "torn.ipynb"], 1, "not a notebook that can be read"),
        ([path, "--to", tmp_path / "no" / "train.py"], 1, "there is no folder"),
        ([path, "--to", tmp_path], 1, "is a folder"),
    ]:
        done = export(*words, cwd=tmp_path)
        assert done.returncode == status and said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
