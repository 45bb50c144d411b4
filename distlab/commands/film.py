"""`distlab film`: an animation of one algorithm, from a run of it on this machine."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab import cost
from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.launch import Report
from distlab.show import Player, player
from distlab.units import readable_bytes

__all__ = ["film", "filmed"]


def film(
    algorithm: Annotated[str, typer.Argument(help="Such as ring_all_reduce.")],
    path: Annotated[Path, typer.Argument(help="A .gif, .html, .svg or .png file.")],
    ranks: Annotated[int, typer.Option(help="How many processes run it.")] = 4,
) -> None:
    """Run an algorithm on real processes and write an animation of their messages."""
    from distlab import collectives  # a small install, which lacks it, has --help

    algorithms = {  # those that need nothing but a tensor
        name: function
        for name, function in collectives.variants("all_reduce").items()
        if "ranks_per_node" not in inspect.signature(function).parameters
    }
    if algorithm not in algorithms:
        raise InvalidArgument(
            f"there is no algorithm {algorithm!r} to animate. These are there: "
            f"{', '.join(algorithms)}."
        )
    console = Console()
    with Progress(f"{algorithm} on {ranks} processes, then its animation"):
        report, animation = filmed(algorithms[algorithm], ranks)
        animation.save(path)
    size = readable_bytes(path.stat().st_size)
    console.print(f"{path}: {report.trace.rounds()} rounds, {size}", highlight=False)


def filmed(all_reduce: Callable, ranks: int) -> tuple[Report, Player]:
    """Run an all-reduce on real processes; return the run and its animation."""
    from distlab.launch import follow

    report = follow(all_reduce, ranks)
    bound = cost.all_reduce_bound_bytes(ranks, 10 * ranks * (4 if ranks <= 8 else 8))
    title = all_reduce.__name__.replace("all_reduce", "all-reduce").replace("_", " ")
    title = title[0].upper() + title[1:]
    label = "bound 2(n-1)/n S"
    return report, player(report, title, bound_bytes=bound, bound_label=label)
