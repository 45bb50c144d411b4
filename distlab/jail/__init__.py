"""A jail: processes that run what is not to be trusted, and what they cannot do.

    owner                          init, pid 1 of the jail          processes
    ─────                          ───────────────────────          ─────────
    Jail() ── fork ──────────────▶ builds its own world: root,
       ▲                           mounts, network, pids
       │◀─ "it used more than" ──  looks at all every 50 ms
    inhabit():
    Processes ── session ────────▶ fork, drop everything ────────▶  entry(child)
       ├──────────────── channel: frames both ways ───────────────────┤
       └──────────────── output: one pipe each ───────────────────────┘

The init is a process server, forked from its owner with all that is imported there, so
that a process of the jail starts as fast as any. It runs nothing but our own code. Its
processes see Python, its libraries and an empty home; of the machine's other files,
processes, users and networks nothing. Whatever they start dies with the init, and the
init with its owner.
"""

from distlab.jail.isolation import best_isolation, words
from distlab.jail.jail import Jail
from distlab.jail.limits import Limits

__all__ = ["Jail", "Limits", "best_isolation", "words"]
