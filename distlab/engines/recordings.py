"""Recorded results of lesson cells, for readers without the cell's real system.

    if etcd.is_installed():
        ...
    else:
        display(guess.compare(recordings.result("02 etcd-cut")))

`docs/recordings.py` writes them into `recordings.json`, from lessons that ran here.
"""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from distlab.errors import InvalidArgument

__all__ = ["result"]


def result(cell: str) -> float | str | None:
    """Print what a cell printed where its system ran, and with which version.

    cell: the lesson's number and the cell's id, such as "02 etcd-cut".
    Returns: the result that the cell compares with a guess; None if it compares none.
    Raises: InvalidArgument if nothing was recorded for this cell.
    """
    results = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    if cell not in results:
        raise InvalidArgument(
            f"nothing was recorded for the cell {cell!r}, only for {', '.join(results)}"
        )
    found = results[cell]
    package = found["system"].split()[0]
    print(f"Recorded on {found['date']} with {found['system']}", end="")
    try:
        version(package)
        print(".")
    except PackageNotFoundError:
        extra = {"ray": "ray", "pyspark": "spark"}.get(package, "systems")
        print(f', which is not installed here. Add it: pip install "distlab[{extra}]"')
    print(found["text"], end="")
    return found["measured"]
