"""What pip is told to install, and what a package needs of what is installed here."""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def pins_of(path: Path) -> dict[str, str]:
    """Return the version that a file pins of each package; refuse another line."""
    lines = [line for line in path.read_text().splitlines() if line]
    pins = [line.split("==") for line in lines if not line.startswith(("#", "--"))]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins}


def needed(wanted: list[str]) -> set[str]:
    """Return the names of all that `wanted` needs, with what that needs in turn."""
    asked, seen = [Requirement(each) for each in wanted], set()
    for each in asked:
        new = {(each.name, extra) for extra in {"", *each.extras}} - seen
        seen |= new
        for name, extra in new:
            for part in map(Requirement, metadata.requires(name) or []):
                if part.marker is None or part.marker.evaluate({"extra": extra}):
                    asked.append(part)
    return {canonicalize_name(each.name) for each in asked} - {"distlab", "setuptools"}
