"""The sandbox for untrusted code: one bubblewrap process, and forks of it.

    Sandbox ──▶ bwrap ── template: torch and distlab imported, nothing of a submission's
                           │ fork, in mounts and processes of its own
      Submission ────────▶ notebook: runs the cells, one after another
                           │ fork, for each check
                           check server ── fork ──▶ ranks, nodes, workers: each with
                                                    mounts, network, /tmp of its own

A check names the function to run: the fork of the notebook has the definitions of its
cells, so no function is serialized into a sandbox. Results are bytes, which are read
as plain data. Bubblewrap (`bwrap`) makes the outer isolation: the system's libraries
and Python read-only, no other file, no network but a loopback, no process but its own.
"""

from distlab.sandbox.named_objects import Named
from distlab.sandbox.sandbox import Sandbox, SandboxedNotebook, why_no_sandbox

__all__ = ["Named", "Sandbox", "SandboxedNotebook", "why_no_sandbox"]
