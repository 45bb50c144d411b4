"""What code that is not trusted runs in: one bubblewrap, and forks of it.

    Sandbox ──▶ bwrap ── template: torch and distlab imported, nothing of a submission's
                           │ fork, in mounts and processes of its own
      Submission ────────▶ notebook: runs the cells, one after another
                           │ fork, for each check
                           check server ── fork ──▶ ranks, nodes, workers: each with
                                                    mounts, network, /tmp of its own

What a check wants to run is told by name: the fork of the notebook knows what its cells
defined, so no function travels into a sandbox. What comes out is bytes, which are read
as plain data. Bubblewrap (`bwrap`) makes the outer walls: the system's libraries and
Python read-only, no other file, no network but a loopback, no process but its own.
"""

from distlab.sandbox.names import Named
from distlab.sandbox.sandbox import Sandbox, Submission, why_no_sandbox

__all__ = ["Named", "Sandbox", "Submission", "why_no_sandbox"]
