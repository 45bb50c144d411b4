"""The beginning of a worker: what it forks later is forked before it knows anything."""

from importlib import import_module

from distlab.grading.marking import CHECKING, KERNEL
from distlab.processes import Child, warm_up
from distlab.processes.child import on_its_own
from distlab.processes.server_handle import ServerHandle

__all__ = ["main"]


def main(child: Child) -> None:
    """Fork the servers, and only then import nbgrader, which they have no use for."""
    on_its_own()
    ServerHandle.by_fork = True
    warm_up(CHECKING)
    warm_up(KERNEL)
    import_module("distlab.grading.desk.worker").main(child)
