"""`distlab film`: an animation of one algorithm, from a run of it on this machine."""

import inspect
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab import collectives, cost
from distlab.errors import InvalidArgument
from distlab.launch import follow
from distlab.show import save
from distlab.units import readable_bytes

__all__ = ["film"]


def film(
    algorithm: Annotated[str, typer.Argument(help="Such as ring_all_reduce.")],
    path: Annotated[Path, typer.Argument(help="A .gif, .html, .svg or .png file.")],
    ranks: Annotated[int, typer.Option(help="How many processes run it.")] = 4,
) -> None:
    """Run an algorithm on real processes and write an animation of what they did."""
    algorithms = _filmable()
    if algorithm not in algorithms:
        raise InvalidArgument(
            f"there is no algorithm {algorithm!r} to animate. These are there: "
            f"{', '.join(algorithms)}."
        )
    console = Console()
    with console.status(f"{algorithm} on {ranks} processes, then its animation ..."):
        report = follow(algorithms[algorithm], ranks)
        bound = cost.all_reduce_bound_bytes(
            ranks, 10 * ranks * (4 if ranks <= 8 else 8)
        )
        title = algorithm.replace("all_reduce", "all-reduce").replace("_", " ")
        title = title[0].upper() + title[1:]
        save(report, path, title, bound_bytes=bound, bound_label="bound 2(n-1)/n S")
    size = readable_bytes(path.stat().st_size)
    console.print(f"{path}: {report.trace.rounds()} rounds, {size}", highlight=False)


def _filmable():
    """Return the all-reduces that need nothing but a tensor, by name."""
    return {
        name: function
        for name, function in collectives.variants("all_reduce").items()
        if "ranks_per_node" not in inspect.signature(function).parameters
    }
