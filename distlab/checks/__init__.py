"""Checks of exercises: one file per exercise, and a kit that all of them use.

    grade(3, checks.reduce_scatter, reduce_scatter, [(4, 8), (2, 6)], hidden)

    grade ──▶ check(function, *case) ──▶ kit: on_ranks, on_nodes, on_workers, call
      ▲          │                        │  the function runs in processes of its own
      │          │ raises Wrong(found, **facts)   ◀── plain data, and the trace
      └── the first Hint whose `when(facts)` holds

A check compares what the learner's function did with an oracle. It raises `Wrong` with
what it found, `Inconclusive` where a run shows nothing, or returns. To add an exercise,
copy the shortest file here: a check is a function, its hints are a list, and
`distlab prove` runs right and wrong answers through both.
"""

from distlab.checks.kit.hints import hint
from distlab.checks.kit.verdict import grade, grade_each

__all__ = ["grade", "grade_each", "hint"]
