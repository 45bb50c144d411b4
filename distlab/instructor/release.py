"""The release of an exercise, as published or with the contract of a course's seed.

    solutions/10_ring/10_ring.ipynb   the contract's own solution  ──▶ exercises/10_ring
    .distlab/10_ring/published.ipynb  what it was before
    .distlab/10_ring/variant.json     the seed, and a digest of that solution
    .distlab/10_ring/seeds.json       every seed that was released here, its contract

The seed stands in no other file. A release is taken back if nbgrader refuses it.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from distlab.checks.kit.contracts import (
    RULES,
    contract_in,
    contract_of,
    with_contract,
)
from distlab.errors import CourseUnusable
from distlab.files import write_whole
from distlab.instructor.course import Course

__all__ = ["Release"]

_SEED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True)
class Release:
    """One assignment of a course, and what of it has been released.

    source: the solution's notebook.

    Raises: CourseUnusable if it has no solution here.
    """

    course: Course
    stem: str

    source: Path = field(init=False)

    def __post_init__(self):
        folder = self.course.folder("source", assignment=self.stem)
        found = sorted(folder.glob("*.ipynb"))
        if not found:
            raise CourseUnusable(f"there is no notebook in {folder}.")
        object.__setattr__(self, "source", found[0])

    @property
    def seed(self) -> str:
        """The seed of the released variant, "" if the published one is released."""
        return self._noted().get("seed", "")

    @property
    def same(self) -> list[str]:
        """The other seeds released here whose contract is that of the solution now."""
        known = self._read("seeds.json").items()
        return [s for s, each in known if each == self.contract and s != self.seed]

    @property
    def contract(self) -> dict[str, str]:
        """The contract of the solution as it is now, {} for the published one."""
        return contract_in(self._cells())

    def with_variants(self) -> list[str]:
        """Return the names of the course's assignments that have variants."""
        found = self.course.folder("source").glob(f"*/{RULES}")
        return sorted(path.parents[1].name for path in found)

    def sentences(self) -> list[str]:
        """Return a sentence for each choice of the contract."""
        cells = self._cells()
        return contract_of(cells).sentences(contract_in(cells)) if self.contract else []

    def check_seed(self) -> None:
        """Raise CourseUnusable if the solution no longer has its seed's contract."""
        if self.seed and self.contract != self._noted()["contract"]:
            raise CourseUnusable(
                f"{self.stem} was released as the variant of seed {self.seed}, and "
                f"{self.source} has another contract now. Make it again: "
                f"`distlab release {self.stem} --variant {self.seed}`."
            )

    def publish(self, seed: str | None = None, *, force: bool = False) -> None:
        """Make the solution that of the seed, None for the published; release it.

        force: also over a solution that was edited, and where there are submissions.

        Raises: CourseUnusable.
        """
        before = self.source.read_text("utf-8")
        published = self._published(before, force)
        text, contract = published, {}
        if seed is not None:
            text, contract = self._made(published, seed)
        if contract != self.contract and not force:
            self._require_no_submissions()
        home = self.course.root / ".distlab" / self.stem
        home.mkdir(parents=True, exist_ok=True)
        self.course.log_to(home / "log.txt")
        write_whole(home / "published.ipynb", published, mode=0o644)
        write_whole(self.source, text, mode=0o644)
        try:
            self.course.release(self.stem)
        except CourseUnusable:
            write_whole(self.source, before, mode=0o644)
            raise
        noted = {"seed": seed, "contract": contract, "digest": _digest(text)}
        write_whole(home / "variant.json", json.dumps(noted if seed else {}))
        seeds = self._read("seeds.json") | ({seed: contract} if seed else {})
        write_whole(home / "seeds.json", json.dumps(seeds))

    def _made(self, published, seed):
        """Return the solution of a seed as text, and its contract."""
        if not _SEED.fullmatch(seed):
            raise CourseUnusable(
                f"{seed[:60]!r} is no seed: take a word or a number, such as "
                "spring-2031, of up to 40 letters a to z, digits, dots and dashes."
            )
        if self.stem not in self.with_variants():
            names = "\n".join(f"    {name}" for name in self.with_variants())
            raise CourseUnusable(f"{self.stem} has no variants. These have:\n{names}")
        notebook = json.loads(published)
        choices = contract_of(notebook["cells"])
        contract = choices.of_seed(self.stem, seed)
        folder = self.source.parent
        notebook["cells"] = with_contract(folder, notebook["cells"], contract)
        return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", contract

    def _published(self, text, force):
        """Return the published solution, given the text of the one that is there."""
        noted = self._noted()
        if not contract_in(json.loads(text)["cells"]):
            return text
        kept = self.course.root / ".distlab" / self.stem / "published.ipynb"
        if not kept.exists():
            raise CourseUnusable(
                f"{self.source} has a contract, and {kept}, the published solution, is "
                "lost. Put that one back (`git checkout`), and do this again."
            )
        if noted.get("digest") != _digest(text) and not force:
            raise CourseUnusable(
                f"{self.source} was edited after its release, and this would replace "
                "it. Keep a copy of it, and add --force."
            )
        return kept.read_text("utf-8")

    def _require_no_submissions(self):
        submitted = self.course.folder("submitted", "*", self.stem)
        found = list(Path("/").glob(str(submitted).lstrip("/")))
        if found:
            many = f"{len(found)} submission{'s' * (len(found) > 1)} of {self.stem}"
            raise CourseUnusable(
                f"{many} answered another contract. To grade by a new one, add "
                "--force; if these are last year's, move `submitted` away."
            )

    def _cells(self):
        return json.loads(self.source.read_text("utf-8"))["cells"]

    def _noted(self):
        return self._read("variant.json")

    def _read(self, name):
        path = self.course.root / ".distlab" / self.stem / name
        return json.loads(path.read_bytes()) if path.exists() else {}


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()
