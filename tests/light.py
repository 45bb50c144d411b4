"""A course with one exercise of a few seconds, for tests of what grades it."""

import shutil
from pathlib import Path

import nbformat
from nbformat import v4

ROOT = Path(__file__).parents[1]
STEM = "01_fastest"

IMPORTS = "from distlab.grading import BestWorldSize, grade"
ANSWER = """def fastest(serial_s, parallel_s, message_s, most):
    ### BEGIN SOLUTION
    def time_s(n):
        return serial_s + parallel_s / n + message_s * (n - 1)

    best = min(range(1, most + 1), key=time_s)
    return best, time_s(1) / time_s(best)
    ### END SOLUTION"""
CHECK = """jobs = [(2, 100, 0.5, 64), (1, 60, 4, 64)]
### BEGIN HIDDEN TESTS
jobs += [(1, 10, 0, 16)]
### END HIDDEN TESTS
grade(4, [BestWorldSize(fastest, *job) for job in jobs])"""

OF_ITS_OWN = """
REPLACE = {"best = min(range(1, most + 1), key=time_s)": "best = first(time_s, most)"}


def first(time_s, most):
    times = [time_s(n) for n in range(1, most + 1)]
    return times.index(min(times)) + 1
"""
VARIANTS = {
    "right_with_a_function_of_its_own": (4, "", OF_ITS_OWN),
    "right_from_a_list": (
        4,
        "",
        'REPLACE = {"range(1, most + 1)": "[*range(1, most + 1)]"}',
    ),
    "wrong_all_there_are": (
        0,
        "More ranks are not always faster",
        'REPLACE = {"best = min": "best = max(range(1, most + 1)) or min"}',
    ),
    "wrong_one_too_few": (
        0,
        "Next to it",
        'REPLACE = {"return best,": "return best - 1,"}',
    ),
    "wrong_seconds": (
        0,
        "T(n) itself",
        'REPLACE = {"time_s(1) / time_s(best)": "time_s(best)"}',
    ),
    "wrong_size_only": (
        0,
        "Return two numbers",
        'REPLACE = {"return best, time_s(1) / time_s(best)": "return best"}',
    ),
    "wrong_upside_down": (
        0,
        "T(n)/T(1)",
        'REPLACE = {"time_s(1) / time_s(best)": "time_s(best) / time_s(1)"}',
    ),
}


def light_course(folder: Path) -> Path:
    """Make a course in `folder`, with nbgrader's settings of this one.

    Returns: the folder of its one solution.
    """
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    solution = folder / "solutions" / STEM
    (solution / "variants").mkdir(parents=True)
    cells = [
        v4.new_markdown_cell("# The fastest world size", id="title"),
        _cell("imports", IMPORTS, locked=True),
        _cell("fastest", ANSWER, solution=True),
        _cell("fastest-check", CHECK, locked=True, grade=True, points=4),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(notebook, solution / f"{STEM}.ipynb")
    for name, (points, hint, code) in VARIANTS.items():
        text = f'"""{name}."""\n\nPOINTS = {points}\nHINT = "{hint}"\n{code}\n'
        (solution / "variants" / f"{name}.py").write_text(text)
    return solution


def _cell(name, source, locked=False, grade=False, solution=False, **more):
    nbgrader = {"grade_id": name, "schema_version": 3, "task": False, **more}
    nbgrader |= {"locked": locked, "grade": grade, "solution": solution}
    return v4.new_code_cell(source, id=name, metadata={"nbgrader": nbgrader})
