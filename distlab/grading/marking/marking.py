"""`Marking`: in the place of nbgrader's `Execute`, runs and marks a submission."""

import shutil

from nbformat import from_dict
from nbformat.v4 import new_markdown_cell
from traitlets import Bool, Float

from distlab.grading.marking.answers import answered
from distlab.grading.marking.asked import mark
from distlab.grading.marking.belongings import copy_belongings
from distlab.grading.marking.gradebook import grade_id_of, hides_between, release_of
from distlab.grading.marking.names import Known, needed
from distlab.grading.marking.outputs import inert_text, writable
from distlab.grading.marking.paper import score, text
from distlab.grading.marking.running import Lost, Running
from distlab.jail import best_isolation, words
from distlab.preloads import CHECKING, KERNEL
from distlab.processes import branch, warm_up
from distlab.processes.folders import new_folder

__all__ = ["Marking", "NoIsolation"]

_LANGUAGE = {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"}


class NoIsolation(Exception):
    """This machine offers no isolation, and grading without was not asked for."""


class Marking(Running):
    """Runs a submission's cells in jails, and its grade cells on trusted ground.

    What is checked, and for how many points, comes from the gradebook alone.
    """

    check_timeout = Float(180.0, help="Seconds that one grade cell may take.").tag(
        config=True
    )
    allow_unsafe = Bool(
        False,
        help="Whether to grade where the system offers no isolation: what is handed in "
        "then runs with your rights, and can read and change all that you can.",
    ).tag(config=True)

    def preprocess(self, nb, resources=None, km=None):
        """Run and mark a notebook; all that this started is gone afterwards."""
        isolation = self.isolation()
        self._release = release_of(resources)
        self._known, self._isolations, self._busy_s = Known(), set(), {}
        warm_up(CHECKING)
        branch(KERNEL, CHECKING)
        files = new_folder(in_memory=False)
        try:
            copy_belongings(resources, self, files)
            self._room = {"isolation": isolation, "files": files}
            try:
                self._begin(nb, resources, self._room)
                self._isolations.add(self.km.provisioner.isolation)
                for index, cell in enumerate(nb.cells):
                    self._take(cell, index)
            finally:
                self._end()
        finally:
            shutil.rmtree(files, ignore_errors=True)
        self._sign(nb)
        return nb, resources

    def isolation(self) -> str:
        """Return the isolation to use.

        Raises: NoIsolation if there is none, and none was not asked for.
        """
        found = best_isolation()
        if found == "none" and not self.allow_unsafe:
            raise NoIsolation(
                "nothing was graded: submissions would run with your rights, since "
                "this system offers neither namespaces nor another user to be.\n"
                "On Linux allow user namespaces (sysctl kernel.unprivileged_userns_"
                "clone=1), or grade as root in a container, with a Python that all "
                "users may read. If you trust all that is handed in, set "
                "c.Marking.allow_unsafe = True in nbgrader_config.py."
            )
        return found

    def _take(self, cell, index):
        """Run a cell or mark it; which of the two is the gradebook's to say."""
        known = self._release.cells.get(grade_id_of(cell))
        cell.metadata = {} if known is None else {"nbgrader": known.metadata()}
        cell.metadata = from_dict(cell.metadata)
        if cell.cell_type != "code":
            cell.source = inert_text(cell.source)
            cell.pop("attachments", None)
        elif known is not None and known.marked:
            cell.source = known.source
            self._mark(cell, known)
        else:
            if known is not None and known.locked:
                self._known.learn(known.source)
            self._run(cell, index)

    def _mark(self, cell, known):
        """Give a grade cell its outputs: verdicts, pictures, and one float."""
        outputs, earned, error = [], 0.0, ""
        try:
            if self._left() <= 0:
                raise Lost("the exercise's time was over")
            outputs, earned, error = self._marks(known)
        except Lost as lost:
            outputs = [text(f"✗ {lost}, so this step could not be judged.\n")]
        if error:
            self.log.error("Cell %r could not be judged:\n%s", known.name, error)
            said = "✗ This step could not be judged; your instructor can see why.\n"
            outputs.append(text(said))
        if not (type(earned) is float and 0 <= earned <= known.points):
            self.log.error("Cell %r gave %r points", known.name, earned)
            earned = 0.0
        cell.execution_count = None
        cell.outputs = [from_dict(o) for o in [*writable(outputs), score(earned)]]

    def _marks(self, known):
        """Return outputs, points, and what the instructor should know.

        Raises: Lost if what is to be marked cannot be had.
        """
        own = {*self._known.constants, *self._known.imports}
        from distlab import grading

        names = [n for n in needed(known.source) if n not in own | {*grading.__all__}]
        packed, cells = self._asked(names)
        task = {
            "source": known.source,
            "delimiters": hides_between(self.config),
            "imports": self._known.imports,
            "constants": {n: repr(v) for n, v in self._known.constants.items()},
            "packed": packed,
            "cells": cells,
        }
        marks = mark(task, self._room, min(self.check_timeout, self._left()))
        self._isolations.add(marks.isolation)
        self._busy_s[known.name] = round(marks.busy_s, 2)
        return marks.outputs, marks.earned, marks.error

    def _asked(self, names):
        """Return what the kernel has packed under these names, and its cells.

        Raises: Lost if there is something that it does not have.
        """
        if not names:
            return {}, {}
        if not self._alive():
            raise Lost("no kernel was left")
        module = "distlab.grading.marking.packing"
        call = f"__import__({module!r}, fromlist=['asked']).asked({names!r}, globals())"
        reply = self._reply(
            "",
            min(self.timeout, max(1.0, self._left())),
            silent=True,
            store_history=False,
            user_expressions={"asked": call},
        )
        if reply is None:
            self._renew()
            raise Lost(f"handing in {_these(names)} took too long, or ended the kernel")
        return answered(reply, names, self.nb.cells)

    def _sign(self, nb):
        """Say in the notebook which isolation was in force, and what checks took."""
        isolations = sorted(self._isolations - {""})
        said = " ".join(words(isolation) for isolation in isolations)
        self.log.info("Isolation: %s", said)
        self.resources["distlab"] = {"isolation": isolations}
        kept = {"kernelspec": nb.metadata.get("kernelspec", {})}
        facts = {"isolation": isolations, "busy_s": self._busy_s}
        kept |= {"distlab": facts, "language_info": _LANGUAGE}
        nb.metadata = from_dict(kept)
        cell = new_markdown_cell(f"*How this was graded: {said}*")
        if nb.nbformat_minor < 5:
            del cell["id"]
        nb.cells.append(cell)


def _these(names):
    return " and ".join(f"`{name}`" for name in names)
