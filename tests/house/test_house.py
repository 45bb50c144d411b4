"""The rules of the house that a machine can hold."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distlab"
MODULES = sorted(PACKAGE.rglob("*.py"))

FLOORS = {
    "errors": 0,
    "imports": 0,
    "units": 0,
    "preloads": 0,
    "files": 0,
    "trace": 1,
    "links": 1,
    "peers": 1,
    "cells": 1,
    "faults": 1,
    "show": 1.5,  # to the side: draws what floors 0 and 1 hold, for anybody above
    "predictions": 1.5,
    "calls": 2,
    "processes": 2,
    "recorder": 2,
    "cost": 2,
    "history": 2,
    "comm": 3,
    "network": 3,
    "jail": 3,
    "simulated": 3,
    "launch": 4,
    "collectives": 4,
    "agree": 5,
    "dataflow": 5,
    "train": 5,
    "engines": 5,
    "grading": 6,
    "quiz": 6,
    "progress": 6,
    "commands": 7,
    "__main__": 8,
}
LAZY_FACE = "__init__"  # distlab/__init__.py names things, and imports none of them


def unit_of(path):
    """Return the name in the floor table that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """Return the distlab units that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "distlab":
                names = [f"distlab.{alias.name}" for alias in node.names]
            assert node.level == 0, f"{path}: relative import"
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("distlab.")}
    return found


def violations(path):
    """Return the imports of a file that are not from a floor below its own."""
    own = unit_of(path)
    return [
        name
        for name in imports_of(path)
        if name != own and FLOORS.get(name, 99) >= FLOORS[own]
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_floors_below(path):
    if unit_of(path) != LAZY_FACE:
        assert not violations(path)


def test_the_floor_rule_would_notice_an_import_upwards(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    bad = tmp_path / "trace.py"
    bad.write_text("from distlab import launch\nimport distlab.comm\nimport json\n")
    assert sorted(violations(bad)) == ["comm", "launch"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 50, node.name


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_everything_public_says_what_it_is(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "the module"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            assert ast.get_docstring(node), node.name
        if isinstance(node, ast.ClassDef) and node.name[0] != "_":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name[0] != "_":
                    assert ast.get_docstring(method), f"{node.name}.{method.name}"


def test_nobody_catches_everything_or_imports_stars():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ExceptHandler) and node.type is None), path
            if isinstance(node, ast.ImportFrom):
                assert node.names[0].name != "*", path


def test_importing_distlab_is_light_and_loads_no_torch():
    code = (
        "import sys, distlab; from distlab import run, World, Trace, Kill\n"
        "print([m for m in ('torch', 'matplotlib', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("module", ["grading.desk.worker", "commands.execute"])
def test_whoever_reads_notebooks_does_not_wait_for_grammars(module):
    code = f"import sys, distlab.{module}; print([*{{'lark'}} & set(sys.modules)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_linter_and_formatter_have_nothing_to_say():
    for check in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *check,
                "distlab",
                "tests",
                "nbgrader_config.py",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout


def test_paths_that_the_readme_names_exist():
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert named and not missing


def test_ci_runs_the_readmes_test_command_word_for_word():
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- test -->\s*```sh\n(.*?)```", text, re.DOTALL).group(1)
    commands = [line for line in block.splitlines() if line.strip()]
    script = (ROOT / ".ci" / "run").read_text()
    assert len(commands) == 1
    assert commands[0] in script.splitlines()


def test_every_requirement_is_pinned():
    pins = {}
    for line in (ROOT / "binder" / "requirements.txt").read_text().splitlines():
        if line and not line.startswith(("#", "-")):
            name, _, version = line.partition("==")
            assert version, line
            pins[name.lower().replace("_", "-").replace(".", "-")] = version
    assert pins["torch"] == "2.13.0"
    text = (ROOT / "pyproject.toml").read_text()
    wanted = re.findall(r'^    "([\w-]+)(?:>=|\[|")', text, re.MULTILINE)
    wanted = [name for name in wanted if name not in ("setuptools", "distlab")]
    assert len(wanted) > 10
    assert not [name for name in wanted if name.lower() not in pins]


NOTEBOOKS = sorted(
    path
    for folder in ("lessons", "solutions", "exercises")
    for path in (ROOT / folder).rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT)))
def test_notebooks_are_committed_without_outputs_and_with_stable_ids(path):
    cells = json.loads(path.read_text())["cells"]
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert not [i for i in ids if re.fullmatch(r"[0-9a-f]{8}", i)], (
        "ids that say nothing"
    )
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_cells_are_short(path):
    cells = json.loads(path.read_text())["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            assert len("".join(cell["source"]).splitlines()) <= 30, cell["id"]


SKELETON = ["The question", "Predict", "Picture", "Build", "Measure", "Break"]
SKELETON += ["What the real systems do", "Remember", "Ask yourself", "Next"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "lessons").glob("*.ipynb")), ids=lambda p: p.stem
)
def test_lessons_follow_the_skeleton_and_are_mostly_prose(path):
    cells = json.loads(path.read_text())["cells"]
    prose = "\n".join(
        "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"
    )
    code = [
        ("".join(c["source"])).splitlines() for c in cells if c["cell_type"] == "code"
    ]
    assert re.findall(r"^## (.*)$", prose, re.MULTILINE) == SKELETON
    assert 4 <= len(prose.split()) / sum(map(len, code)) <= 24
    assert sorted(map(len, code))[len(code) // 2] <= 8
    assert not re.search(r"^\s*[-*] ", prose, re.MULTILINE), (
        "bullets where a sentence will do"
    )
    assert "!" not in re.sub(r"`[^`]*`|\$[^$]*\$", "", prose)
