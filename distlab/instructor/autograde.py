"""`InSandbox`: the replacement of nbgrader's `Execute` that grades in a sandbox.

    nbgrader: InSandbox        trusted: grade cells, the checks and their relay, points
      └ Submission, sandboxed  the submission's own cells, one after another
          └ forks of it        ranks, nodes, workers of the checks

A grade cell runs here, as it is in the gradebook; the learner's names in it are
`Named`: they refer to objects that exist only in the sandbox. So a submission never
runs in a process that holds the solutions, and never writes to where a score is read.
"""

import ast
import builtins
import contextlib
import importlib
import sys
import time
from pathlib import Path

from nbformat import from_dict
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Bool, Float, Integer

from distlab.cell_sources import learn
from distlab.checks.kit.grading import showing_on
from distlab.checks.kit.ranks import until
from distlab.errors import DistlabError, SandboxFailed
from distlab.instructor.safe_outputs import Paper, clean, score, text, trouble
from distlab.patience import patience
from distlab.sandbox import Named, Sandbox, why_no_sandbox
from distlab.sandbox.ipython_shell import defined
from distlab.sandbox.sandbox import NotebookLost

__all__ = ["InSandbox", "check_names"]

_MOST_FILES_BYTES = 2**26
_INSISTED = "without a sandbox: its code ran with the rights of whoever graded it"
_SAFE = "in a sandbox (bubblewrap): no network, no files of this machine, limits"


class InSandbox(NbGraderPreprocessor):
    """A runner of submissions: their cells sandboxed, grade cells trusted."""

    cell_timeout = Float(60.0, help="Seconds that a cell may take.").tag(config=True)
    step_timeout = Float(
        180.0, help="Seconds that the checks of one grade cell may take."
    ).tag(config=True)
    exercise_timeout = Float(
        600.0, help="Seconds that a whole submission may take, checks included."
    ).tag(config=True)
    restarts = Integer(
        2, help="How often a submission gets a new process in place of a lost one."
    ).tag(config=True)
    allow_unsafe = Bool(
        False,
        help="Whether to grade where the system offers no sandbox: submissions then "
        "run with your rights, and can read and change all that you can.",
    ).tag(config=True)

    sandbox: Sandbox | None = None  # one for all submissions, where there are many

    def preprocess(self, nb, resources):
        """Run and grade a notebook; end all processes started for it."""
        cells = nb.cells
        with contextlib.ExitStack() as closing:
            box = self.sandbox or closing.enter_context(self.open_sandbox(cells))
            files = _files_beside(resources)
            self._deadline = time.monotonic() + patience(self.exercise_timeout)
            runner = _Runner(box, files, self)
            closing.callback(runner.close)
            space = _Space()
            for number, cell in enumerate(cells, 1):
                if cell.cell_type != "code":
                    continue
                lines = [f"{line}\n" for line in cell.source.split("\n")]
                learn({f"<cell {number}>": (f"Cell {number}", lines)})
                if is_grade(cell) and not is_solution(cell):
                    self._grade(cell, space, runner)
                else:
                    if is_locked(cell):
                        space.learn(cell.source)
                    cell.outputs = runner.run(cell.source, number)
        how = _SAFE if box.isolated else _INSISTED
        facts = nb.metadata.setdefault("distlab", {})
        if not facts.get("copied"):  # which says the same of the whole
            runner.notes += [
                f"answers another contract: {met} ({', '.join(steps)})"
                for met, steps in runner.met.items()
            ]
        facts |= {"sandbox": how, "notes": [*facts.get("notes", []), *runner.notes]}
        nb.cells.append(new_markdown_cell(f"*Graded {how}.*"))
        return nb, resources

    def open_sandbox(self, cells) -> Sandbox:
        """Return a sandbox for the exercise with these cells.

        Raises: SandboxFailed if there can be none, and `allow_unsafe` is not set.
        """
        why = why_no_sandbox()
        if why and not self.allow_unsafe:
            raise SandboxFailed(
                f"nothing was graded: submissions would run with your rights. {why}.\n"
                "On Linux, allow user namespaces (in a container, start it with the "
                "rights to make them). If you trust all that is submitted, set "
                "c.InSandbox.allow_unsafe = True in nbgrader_config.py."
            )
        modules = [importlib.import_module(name) for name in check_names(cells)]
        withheld = [name for m in modules for name in getattr(m, "WITHOUT", ())]
        preload = [module.__name__ for module in modules]
        return Sandbox(withheld=withheld, preload=preload, isolated=not why)

    def left(self) -> float:
        """Return the seconds that are left for the exercise."""
        return self._deadline - time.monotonic()

    def _grade(self, cell, space, runner):
        """Run a grade cell; set its outputs: verdicts, pictures, and one float."""
        paper, earned, why = Paper(), 0.0, ""
        points = float(cell.metadata["nbgrader"]["points"])
        try:
            limit_s = max(0.0, min(patience(self.step_timeout), self.left()))
            with runner.checks(), showing_on(paper), until(limit_s):
                earned = space.value(cell.source)
        except NotebookLost as lost:
            why = str(lost)
        except Exception as error:
            name = cell.metadata["nbgrader"]["grade_id"]
            self.log.exception("Cell %r could not be graded", name)
            why = f"{type(error).__name__}: {error}" * isinstance(error, DistlabError)
            why = why or "your instructor can see why"
        if why:
            paper.outputs.append(text(f"✗ This step could not be graded: {why}\n"))
            runner.notes.append(f"{cell.metadata['nbgrader']['grade_id']}: {why}")
        if paper.inconclusive:
            named = f"{cell.metadata['nbgrader']['grade_id']} is inconclusive"
            runner.notes.append(f"{named}: grade it again, --force --student ...")
        for met in sorted(paper.met):
            steps = runner.met.setdefault(met.replace("; ", " and "), [])
            steps.append(cell.metadata["nbgrader"]["grade_id"])
        if not (type(earned) is float and 0 <= earned <= points):
            self.log.error("A grade cell gave %r points", earned)
            earned = 0.0
        cell.execution_count = None
        cell.outputs = [from_dict(each) for each in [*paper.outputs, score(earned)]]


def check_names(cells) -> list[str]:
    """Return the names of the modules of `distlab.checks` that locked cells import."""
    names = {}
    for cell in cells:
        if cell.cell_type == "code" and is_locked(cell):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and node.module == "distlab.checks":
                    names |= dict.fromkeys(alias.name for alias in node.names)
    found = [f"distlab.checks.{name}" for name in names]
    return [name for name in found if importlib.util.find_spec(name)]


class _Space(dict):
    """The namespace of grade cells: imports, constants, and `Named` for other names."""

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)
        return Named(name)

    def learn(self, source):
        """Add a locked cell's constants, and its imports of checks and stdlib."""
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                with contextlib.suppress(ValueError):
                    self[node.targets[0].id] = ast.literal_eval(node.value)
            elif isinstance(node, ast.Import | ast.ImportFrom) and _is_known(node):
                exec(compile(ast.Module([node], []), "imports", "exec"), self)

    def value(self, source):
        """Run a grade cell; return the value of its last expression."""
        body = ast.parse(source).body
        last = ast.Expression(body.pop().value)
        exec(compile(ast.Module(body, []), "the grade cell", "exec"), self)
        return eval(compile(last, "the grade cell", "eval"), self)


def _is_known(node):
    """Return True if an import is of checks, or of Python's standard library."""
    names = [getattr(node, "module", None) or alias.name for alias in node.names]
    return all(
        name.partition(".")[0] in sys.stdlib_module_names
        or f"{name}.".startswith("distlab.checks.")
        for name in names
    )


class _Runner:
    """A submission's process, which runs cells and is replaced when it is lost.

    The cells that succeeded are run again in the new one, so that only the names of the
    cell that ended it are missing. notes: the reasons why cells were stopped.
    met: clauses of another contract that an answer keeps to -> the steps that do.
    """

    def __init__(self, box, files, settings):
        self._box, self._files, self._settings = box, files, settings
        self._good, self._left, self.notes = [], settings.restarts, []
        self._lost, self.met = {}, {}
        self._submission = box.submission(files)

    def close(self):
        """End the process, if there is one."""
        if self._submission is not None:
            self._submission.close()
        self._submission = None

    def run(self, source, number):
        """Run a cell; return its outputs."""
        left_s = self._settings.left()
        seconds = min(patience(self._settings.cell_timeout), left_s)
        if not source.strip():
            return []
        if self._submission is None or seconds <= 0:
            why = "no time is left" if seconds <= 0 else "no process is left"
            return [trouble(f"This cell was not run: {why} for this submission.")]
        try:
            outputs = self._submission.run(
                source, number, seconds, self._lost, min(4 * seconds, left_s)
            )
        except TimeoutError as late:
            self._note(source, late.args[0])
            said = trouble(f"This cell was interrupted: {late.args[0]}.")
            return [*clean(late.args[1]), said]
        except NotebookLost as lost:
            self._note(source, str(lost))
            self._lost |= dict.fromkeys(defined(source), str(lost))
            self._renew()
            return [trouble(f"This cell ended its process: {lost}.")]
        self._good.append((source, number))
        return clean(outputs)

    @contextlib.contextmanager
    def checks(self):
        """Fork the processes of checks from the submission's, for a block."""
        if self._submission is None:
            raise NotebookLost("no process of this submission is left")
        with self._submission.checks():
            yield
        if why := self._submission.why_ended(wait_s=0):  # a failed check has waited
            self._note("a check", why)
            self._renew()

    def _note(self, source, why):
        line = next((line for line in source.splitlines() if line.strip()), "")
        self.notes.append(f"`{line.strip()[:60]}`: {why}")

    def _renew(self):
        """Start a new process and rerun the cells that succeeded, within `restarts`."""
        self.close()
        while self._left and self._submission is None and self._settings.left() > 0:
            self._left -= 1
            self._submission = self._box.submission(self._files)
            for cell in list(self._good):
                try:
                    seconds = min(patience(20.0), self._settings.left())
                    self._submission.run(*cell, seconds, self._lost)
                except (NotebookLost, TimeoutError):
                    self._good.remove(cell)
                    self.close()
                    break


def _files_beside(resources):
    """Return the plain files beside a notebook: name -> content."""
    home = Path(resources.get("metadata", {}).get("path") or ".")
    found, left = {}, _MOST_FILES_BYTES
    for path in sorted(home.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix == ".ipynb":
            continue
        left -= path.stat().st_size
        if left < 0:
            break
        found[str(path.relative_to(home))] = path.read_bytes()
    return found
