"""The rules of the house that a machine can hold."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from pins import pins_of

from distlab.commands.glossary import definitions, page, terms
from distlab.errors import DistlabError

ROOT = Path(__file__).parents[2]
PACKAGE, PROJECT = ROOT / "distlab", ROOT / "pyproject.toml"
MODULES = sorted(PACKAGE.rglob("*.py"))

# DESIGN.md has the same table, with what each of them is.
FLOORS = [
    {"errors", "units", "files", "cell_sources", "optional_imports"},
    {"trace", "faults", "links", "peers", "mesh", "cost", "calls", "patience"},
    {"processes"},
    {"sandbox", "recorder", "show"},
    {"comm", "simulated", "collectives", "history", "diagnosis"},
    {"launch", "network", "dataflow", "tune"},
    {"train", "agree", "plan", "engines"},
    {"checks"},
    {"learner", "instructor"},
    {"commands", "watch"},
    {"__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
LAZY_FACE = "__init__"  # distlab/__init__.py names things, and imports none of them


def offenders(rule, things, *, root=ROOT):
    """Return "place: what is wrong" for all that `rule` says of each thing."""
    return [
        f"{each.relative_to(root)}: {wrong}" for each in things for wrong in rule(each)
    ]


@cache
def tree_of(path):
    """Return the syntax tree of a file, which many rules read."""
    return ast.parse(path.read_text())


def unit_of(path):
    """Return the name in the floor table that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """Return the distlab units that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(tree_of(path)):
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


def imports_upwards(path):
    """Yield the imports of a file that are not from a floor below its own."""
    own = unit_of(path)
    if own == LAZY_FACE:
        return
    for name in sorted(imports_of(path)):
        if name != own and FLOOR_OF.get(name, 99) >= FLOOR_OF[own]:
            yield f"imports {name}"


def test_a_module_imports_only_from_floors_below():
    assert not offenders(imports_upwards, MODULES)


def test_the_floor_rule_would_notice_an_import_upwards(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    bad = tmp_path / "trace.py"
    bad.write_text("from distlab import launch\nimport distlab.comm\nimport json\n")
    found = offenders(imports_upwards, [bad], root=tmp_path)
    assert found == ["trace.py: imports comm", "trace.py: imports launch"]


# Names of earlier versions, none of them a term of the field.
PRIVATE_NAMES = {
    *("guest", "guests", "door", "visit", "let_in", "muster", "equip", "news"),
    *("bearings", "lie", "blackboard", "pulse", "keeper", "film", "films", "weave"),
    *("stops", "turns", "sheet", "strips", "lettering", "travel", "unpack_plain"),
    *("told", "sharded_job", "smallest", "ladder", "standing", "lifeline", "under_way"),
}
NAMED = {  # with their plain meaning
    "commands/film.py": {"film"},
    "checks/data_parallel.py": {"turns"},
    "checks/start_here.py": {"turns"},
    "train/detection.py": {"stops"},
}


def private_names(path):
    """Yield the private names of a file, its classes, functions and parameters."""
    nodes = list(ast.walk(tree_of(path)))
    names = {*path.relative_to(PACKAGE).with_suffix("").parts}
    names |= {n.name for n in nodes if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    allowed = NAMED.get(str(path.relative_to(PACKAGE)), set())
    for name in sorted({name.lower().strip("_") for name in names}):
        if name in PRIVATE_NAMES - allowed:
            yield f"the name {name}"


def test_names_are_the_fields_own():
    assert not offenders(private_names, MODULES)


def test_a_private_name_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    bad = tmp_path / "news.py"
    bad.write_text("class Lie:\n    def film(self, told): ...\n")
    found = offenders(private_names, [bad], root=tmp_path)
    assert [each.split()[-1] for each in found] == ["film", "lie", "news", "told"]


def test_a_class_name_means_one_thing_in_the_whole_library():
    places = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE))
    assert not {name: where for name, where in places.items() if len(where) > 1}


def begins_with_a_question(path):
    tree = tree_of(path)
    asks = "(What|Who|Where|How|When|Whether|Why|Which)"
    if re.match(rf"{asks}\b", ast.get_docstring(tree) or ""):
        yield "the module's docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            said = ast.get_docstring(node) or ""
            if re.match(rf"(Return|Yield|Say|Tell|Show)s? {asks.lower()}\b", said):
                yield f"the docstring of {node.name}"


def test_a_docstring_begins_with_the_thing_that_it_is_about():
    assert not offenders(begins_with_a_question, MODULES)


def test_no_modules_import_each_other_in_a_circle():
    module_of = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in MODULES
    }
    module_of = {
        path: name.removesuffix(".__init__") for path, name in module_of.items()
    }
    needs = {}
    for path, module in module_of.items():
        needs[module] = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                needs[module] |= inner & {*module_of.values()} or {node.module}
    TopologicalSorter(needs).prepare()  # raises CycleError, with the circle


def too_long(path):
    text = path.read_text()
    if len(text.splitlines()) > 500:
        yield "more than 500 lines"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 50:
            yield f"{node.name} has more than 50 lines"


def test_files_and_functions_stay_short():
    assert not offenders(too_long, MODULES)


def undocumented(path):
    tree = tree_of(path)
    public = [("the module", tree)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            public.append((node.name, node))
            public += [
                (f"{node.name}.{method.name}", method)
                for method in getattr(node, "body", ())
                if isinstance(node, ast.ClassDef)
                and isinstance(method, ast.FunctionDef)
                and method.name[0] != "_"
            ]
    return [
        f"{name} has no docstring"
        for name, node in public
        if not ast.get_docstring(node)
    ]


def test_everything_public_says_what_it_is():
    assert not offenders(undocumented, MODULES)


def catches_or_imports_everything(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield "a bare except"
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield "imports *"


def test_no_module_catches_everything_or_imports_stars():
    assert not offenders(catches_or_imports_everything, MODULES)


def test_importing_distlab_is_light_and_loads_no_torch():
    code = (
        "import sys, distlab; from distlab import run, World, Trace, Kill\n"
        "print([m for m in ('torch', 'matplotlib', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_reading_notebooks_does_not_wait_for_grammars():
    for module in ("commands.running.execute",):
        code = f"import sys, distlab.{module}; print('lark' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True
        )
        assert done.stdout.strip() == "False", module + done.stderr


def test_linter_and_formatter_have_nothing_to_say():
    code = ["distlab", "tests", "nbgrader_config.py", "solutions"]
    for check in (["check"], ["format", "--check", "--exclude=*.ipynb"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, *code],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout


def test_paths_that_readme_and_docs_name_exist():
    for described in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = described.read_text()
        named = {ROOT / n for n in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", text)}
        linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        named |= {described.parent / name for name in linked}
        missing = [n for n in named if "NN_" not in n.name and not n.exists()]
        assert not missing, described
    words = re.findall(r"\S*\w\S*", (ROOT / "README.md").read_text())
    assert len(words) <= 700  # the bars of its tables are none


def test_the_readme_has_a_row_for_every_lesson_with_its_question():
    rows = (ROOT / "README.md").read_text().splitlines()
    for lesson in LESSONS:
        (row,) = [row for row in rows if f"](lessons/{lesson.name}) |" in row]
        name, question, minutes, _ = row.split(" | ")
        assert name.startswith(f"[{lesson.stem[:2]} ") and question.endswith("?"), row
        assert minutes.isdecimal(), row


def test_the_readme_says_how_long_all_lessons_and_their_exercises_take():
    text = (ROOT / "README.md").read_text()
    minutes = sum(map(int, re.findall(r"\| (\d+) \|", text)))
    hours, said = re.search(r"take (\d+) hours \((\d+) minutes\)", text).groups()
    assert int(said) == minutes and int(hours) == round(minutes / 60)


def test_ci_runs_the_readmes_test_command_word_for_word():
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- test -->\s*```sh\n(.*?)```", text, re.DOTALL).group(1)
    commands = [line for line in block.splitlines() if line.strip()]
    script = (ROOT / ".ci" / "run").read_text()
    assert len(commands) == 1
    assert commands[0] in script.splitlines()


def test_every_import_is_a_declared_dependency():
    declared = {
        re.split(r"[\[<>=;]", name)[0].lower().replace("_", "-")
        for name in re.findall(r'"([\w-]+(?:\[|[<>=;]).*?)"', PROJECT.read_text())
    }
    known = packages_distributions()
    used = set()
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add(node.module.partition(".")[0])
    used -= {*sys.stdlib_module_names, "distlab"}
    missing = [
        name
        for name in sorted(used)
        if not {each.lower().replace("_", "-") for each in known[name]} & declared
    ]
    assert len(used) > 15 and not missing


def test_every_requirement_is_pinned():
    pins = pins_of(ROOT / "constraints.txt")
    assert pins["torch"] == "2.13.0"
    project = tomllib.loads(PROJECT.read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {re.match(r"[\w-]+", each)[0].lower() for some in lists for each in some}
    assert len(wanted) > 30 and wanted - {"distlab"} <= set(pins)


NOTEBOOKS = sorted(
    path
    for folder in ("lessons", "solutions", "exercises")
    for path in (ROOT / folder).rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)


def cells_of(path):
    """Return the cells of a notebook, each with its source as one text."""
    cells = json.loads(path.read_text())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def outputs_or_unstable_ids(path):
    cells = cells_of(path)
    ids = [cell["id"] for cell in cells]
    if len(set(ids)) < len(ids):
        yield "two cells have one id"
    yield from (f"id {i} says nothing" for i in ids if re.fullmatch("[0-9a-f]{8}", i))
    for cell in cells:
        if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"]):
            yield f"{cell['id']} has outputs"


def test_notebooks_are_committed_without_outputs_and_with_stable_ids():
    assert not offenders(outputs_or_unstable_ids, NOTEBOOKS)


def long_cells(path):
    for cell in cells_of(path):
        if cell["cell_type"] == "code" and len(cell["source"].splitlines()) > 30:
            yield f"{cell['id']} has more than 30 lines"


def test_code_cells_are_short():
    assert not offenders(long_cells, NOTEBOOKS)


SKELETON = ["The question", "Predict", "Picture", "Build", "Measure", "Break"]
SKELETON += ["What the real systems do", "Remember", "Ask yourself", "Next"]


LESSONS = sorted((ROOT / "lessons").glob("*.ipynb"))


def prose_words(source):
    """Return the words of prose; tables, diagrams and formulas are looked at."""
    source = re.sub(r"\$\$.*?\$\$|```.*?```", "", source, flags=re.DOTALL)
    lines = [line for line in source.splitlines() if not line.startswith("|")]
    return sum(bool(re.search(r"\w", word)) for word in " ".join(lines).split())


def without_skeleton_or_prose(path):
    cells = cells_of(path)
    prose = "\n".join(c["source"] for c in cells if c["cell_type"] == "markdown")
    code = [c["source"].splitlines() for c in cells if c["cell_type"] == "code"]
    if re.findall(r"^## (.*)$", prose, re.MULTILINE) != SKELETON:
        yield "headings are not the skeleton"
    words = prose_words(prose) / sum(1 for lines in code for each in lines if each)
    if not 3 <= words <= 8:
        yield f"{words:.1f} words of prose per line of code"
    if sorted(map(len, code))[len(code) // 2] > 8:
        yield "the median code cell has more than 8 lines"
    if "!" in re.sub(r"!\[|`[^`]*`|\$[^$]*\$", "", prose):
        yield "an exclamation mark"


def long_imports(path):
    cell = next(cell for cell in cells_of(path) if cell["cell_type"] == "code")
    lines = re.findall(r"^(?:import|from) .*", cell["source"], re.MULTILINE)
    if len(lines) > 8 or max(map(len, lines)) > 88:
        yield f"{len(lines)} lines of imports, the longest of {max(map(len, lines))}"


def test_import_cells_are_short():
    assert not offenders(long_imports, LESSONS)


def test_lessons_follow_the_skeleton_and_are_half_code():
    assert not offenders(without_skeleton_or_prose, LESSONS)


def long_reading(path):
    words = 0
    for cell in cells_of(path):
        if cell["cell_type"] == "markdown":
            words += prose_words(cell["source"])
        else:
            if words > 120:
                yield f"{words} words before {cell['id']}"
            words = 0


def test_no_lesson_has_more_than_120_words_between_two_things_to_run():
    assert not offenders(long_reading, LESSONS)


def test_each_lesson_defines_the_terms_it_lists_and_the_glossary_has_them():
    assert all(terms(lesson) for lesson in LESSONS)
    assert (ROOT / "docs" / "glossary.md").read_text() == page(LESSONS)


def test_a_term_without_its_definition_would_be_noticed(tmp_path):
    lesson = tmp_path / "00_lesson.ipynb"
    described = "A **rank** is a number. A **node** is a machine."
    cells = [
        {"id": "described", "cell_type": "markdown", "source": [described]},
        {
            "id": "terms",
            "cell_type": "markdown",
            "source": ["(all): rank · world size"],
        },
    ]
    lesson.write_text(json.dumps({"cells": cells}))
    with pytest.raises(DistlabError, match="world size, and defines it in 0"):
        page([lesson])
    cells[1]["source"] = ["(all): rank"]
    lesson.write_text(json.dumps({"cells": cells}))
    assert definitions(lesson) == {"rank": "A rank is a number."}


WITHOUT_EXERCISE = {"20_interview"}  # its mock interview is the exercise


@pytest.mark.parametrize("stem", WITHOUT_EXERCISE)
def test_a_lesson_without_an_exercise_holds_the_mock_interview(stem):
    sources = {
        cell["id"]: cell["source"]
        for cell in cells_of(ROOT / "lessons" / f"{stem}.ipynb")
    }
    assert sources["mock-interview"].startswith("interview(")
    assert "(#The-mock-interview) is it" in sources["next"]
    assert not (ROOT / "exercises" / stem).exists()


@pytest.mark.parametrize(
    "lesson",
    [path for path in LESSONS if path.stem not in WITHOUT_EXERCISE],
    ids=lambda path: path.stem,
)
def test_a_lesson_ends_with_a_link_to_its_exercise(lesson):
    [end] = [cell["source"] for cell in cells_of(lesson) if cell["id"] == "next"]
    exercise = f"../exercises/{lesson.stem}/{lesson.name}"
    assert f"]({exercise})" in end and (lesson.parent / exercise).is_file()


def without_agents(exercise, agents=ROOT / "exercises" / "AGENTS.md"):
    """Yield what is wrong with the advice to assistants in an exercise folder."""
    path = exercise / "AGENTS.md"
    if not path.is_file() or path.read_text() != agents.read_text():
        yield "AGENTS.md is not the one of exercises/"


def test_every_exercise_tells_a_learners_assistant_to_teach():
    exercises = [path for path in (ROOT / "exercises").iterdir() if path.is_dir()]
    assert len(exercises) >= 15 and not offenders(without_agents, exercises)
    text = (ROOT / "exercises" / "AGENTS.md").read_text()
    assert all(word in text for word in ("hint()", "`solutions/`", "Never"))


def test_an_exercise_without_its_advice_would_be_noticed(tmp_path):
    assert list(without_agents(tmp_path))


PHRASES = [
    line.partition(" = ")[::2]
    for line in Path(__file__).with_name("phrases.txt").read_text().splitlines()
    if not line.startswith("#")
]


def avoided_phrases(path):
    """Yield the phrases of a file that people read; of a module, of its messages."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        text = "\n".join(cell["source"] for cell in cells_of(path))
    elif path.suffix == ".py":
        text = "\n".join(messages_of(ast.parse(text)))
    for pattern, instead in PHRASES:
        for found in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            yield f'"{found[0]}": say {instead}'


def messages_of(tree):
    """Yield the sentences among the strings of a module, without its docstrings."""
    expressions = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        text = getattr(node, "value", None)
        if isinstance(text, str) and " " in text and id(node) not in expressions:
            yield text


def test_what_people_read_uses_the_terms_of_the_field():
    cards = sorted((PACKAGE / "learner" / "quiz").glob("*.txt"))
    assert len(PHRASES) > 20
    assert not offenders(avoided_phrases, [*NOTEBOOKS, *cards, *MODULES])


def test_an_avoided_phrase_would_be_noticed(tmp_path):
    bad = tmp_path / "message.py"
    bad.write_text(
        '"""Nobody reads this."""\nraise ValueError("rank 2 has gone home")\n'
    )
    assert len(list(avoided_phrases(bad))) == 1
