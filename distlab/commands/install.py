"""`distlab install`: real systems that need an environment of their own."""

from typing import Annotated

import typer
from rich import print as show

from distlab.engines import flink
from distlab.errors import InvalidArgument

__all__ = ["install"]


def install(
    system: Annotated[str, typer.Argument(help="The system: flink, for lesson 08.")],
) -> None:
    """Make the environment of a system whose packages don't fit beside distlab's."""
    if system != "flink":
        raise InvalidArgument(
            f"{system!r} needs no environment of its own; flink does. `distlab doctor` "
            "says how to add the others."
        )
    folder = flink.install()
    show(f"Flink {flink.version()} is in {folder}")
