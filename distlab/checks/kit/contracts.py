'''Contracts: what a course may ask otherwise than the published exercise does.

    CONTRACT = Contract(                       in a check's file; the first of each
        operator={"sum": "...", "max": "..."},     choice is what is published
    )
    grade(3, checks.total, total, cases, hidden, contract={"operator": "max"})

A check that has one takes `contract`, in which a missing choice is the published one
and, where that does not matter, any. `variants/contracts.toml` beside the solution says
what each other choice changes in the notebook:

    [operator]
    max = [["""old text""", """new text"""], ["twice in it", "new", 2]]

The third is how often the text is there, "any" if that depends on the other choices. A
table `right` lists, by value, the wrong answers in `variants` that it makes right.
'''

import ast
import copy
import hashlib
import importlib
import itertools
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from distlab.errors import DistlabError

__all__ = [
    "PUBLISHED",
    "RULES",
    "Contract",
    "clauses_met",
    "contract_in",
    "contract_of",
    "published_cells",
    "right_under",
    "with_contract",
]

PUBLISHED: Mapping[str, str] = MappingProxyType({})
RULES = "variants/contracts.toml"
_IMPORT = re.compile(r"^from distlab\.checks import (\w+) as checks$", re.MULTILINE)
_ADVICE = re.compile(r"Your function keeps .+? In yours (.+?)\. Asked is that ", re.S)
_LENGTH = "The reference needs"
_ITS_LENGTH = "The published exercise's reference needs"
_LINE = re.compile(r"^contract = (\{.*\})$", re.MULTILINE)


class Contract:
    """The choices of an exercise: name -> value -> what it says, as a clause."""

    def __init__(self, **choices: dict[str, str]):
        self.choices = choices

    def all(self) -> list[dict[str, str]]:
        """Return every contract; the first is the one of the published solution."""
        values = itertools.product(*self.choices.values())
        return [dict(zip(self.choices, each, strict=True)) for each in values]

    def of_seed(self, stem: str, seed: str) -> dict[str, str]:
        """Return the contract of an exercise in the course with this seed.

        It is never the published one.
        """
        digest = hashlib.sha256(f"{stem} {seed}".encode()).digest()
        others = self.all()[1:]
        return others[int.from_bytes(digest) % len(others)]

    def others(self, contract: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the other contracts, those with the fewest other choices first."""
        rest = [each for each in self.all() if each != contract]
        return sorted(rest, key=lambda each: len(each.items() - contract.items()))

    def sentences(self, contract: Mapping[str, str]) -> list[str]:
        """Return a sentence for each choice of a contract."""
        said = [self.choices[name][value] for name, value in contract.items()]
        words = [each.split()[0] for each in said]  # a name of code stays as it is
        return [
            f"{each[0].upper() * word.isalpha() or each[0]}{each[1:]}."
            for word, each in zip(words, said, strict=True)
        ]

    def clauses(self, contract: Mapping[str, str], other: Mapping[str, str]) -> str:
        """Return the clauses of a contract that another does not have."""
        differ = [name for name in contract if contract[name] != other[name]]
        return "; ".join(self.choices[name][contract[name]] for name in differ)

    def advice(self, asked: Mapping[str, str], met: Mapping[str, str]) -> list[str]:
        """Return the levels of the hint to an answer that meets another contract."""
        ours, theirs = self.clauses(asked, met), self.clauses(met, asked)
        return [
            f"Your function keeps to another contract than this course's. In yours "
            f"{theirs}. Asked is that {ours}.",
            "Read “This course's contract” at the top again, with your function beside "
            "it: in which of its lines is each clause?",
        ]


def clauses_met(hint: str) -> str:
    """Return the clauses of an answer in a hint of `Contract.advice`, else ""."""
    found = _ADVICE.match(hint)
    return found[1] if found else ""


def contract_of(cells: list[dict]) -> Contract | None:
    """Return the contract of the check that a notebook imports, if it has one."""
    for cell in cells:
        if found := _IMPORT.search("".join(cell["source"])):
            module = importlib.import_module(f"distlab.checks.{found[1]}")
            return getattr(module, "CONTRACT", None)
    return None


def contract_in(cells: list[dict]) -> dict[str, str]:
    """Return the contract that a notebook is graded by, {} for the published one."""
    for cell in cells:
        found = _LINE.search("".join(cell["source"]))
        if cell["cell_type"] == "code" and found:
            return ast.literal_eval(found[1])
    return {}


def published_cells(solution: Path) -> list[dict]:
    """Return the cells of an exercise's published solution.

    solution: its folder. If it holds a variant, `.distlab` has what it was before.

    Raises: DistlabError if there is no notebook in it, or the published one is lost.
    """
    path = solution / f"{solution.name}.ipynb"
    if not path.exists():
        raise DistlabError(f"there is no {path}, the solution's notebook.")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    if not contract_in(cells):
        return cells
    kept = solution.parents[1] / ".distlab" / solution.name / "published.ipynb"
    if not kept.exists():
        raise DistlabError(
            f"{path} is that of a variant, and {kept}, the published one, is lost. "
            "Put that one back (`git checkout`), and do this again."
        )
    return json.loads(kept.read_text("utf-8"))["cells"]


def right_under(solution: Path, contract: dict[str, str]) -> list[str]:
    """Return the names of wrong answers that are right under a contract."""
    right = tomllib.loads((solution / RULES).read_text("utf-8")).get("right", {})
    return [name for value in contract.values() for name in right.get(value, ())]


def with_contract(solution: Path, cells: list[dict], contract: dict) -> list[dict]:
    """Return a published solution's cells as they are under another contract.

    Raises: DistlabError if a text that changes is not in them as often as it was.
    """
    rules = tomllib.loads((solution / RULES).read_text("utf-8"))
    cells, choices = copy.deepcopy(cells), contract_of(cells)
    sources = ["".join(cell["source"]) for cell in cells]
    for name, value in contract.items():
        for old, new, *rest in rules.get(name, {}).get(value, ()):
            found, times = sum(s.count(old) for s in sources), (rest or [1])[0]
            if times not in (found, "any"):
                raise DistlabError(
                    f"{solution.name}: {name} = {value!r} changes {old!r}, which the "
                    f"solution has {found} times, not {times}. If you edited it there, "
                    f"undo that, or change the rule in {solution.name}/{RULES}."
                )
            sources = [source.replace(old, new) for source in sources]
    for cell, source in zip(cells, sources, strict=True):
        source = source.replace(_LENGTH, _ITS_LENGTH)
        about = cell["metadata"].get("nbgrader", {})
        if _IMPORT.search(source):
            source += f"\n\ncontract = {json.dumps(contract)}"
        if about.get("grade"):
            source = source.rstrip().removesuffix(")") + ", contract=contract)"
        cell["source"] = source.splitlines(keepends=True)
    said = "\n".join(f"> - {each}" for each in choices.sentences(contract))
    head = "> **This course's contract.** Where another text differs, this counts."
    text = f"{head}\n>\n{said}"
    shown = {"cell_type": "markdown", "id": "contract", "metadata": {}}
    cells.insert(1, shown | {"source": text.splitlines(keepends=True)})
    return cells
