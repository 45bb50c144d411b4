"""Grading a whole folder of submissions: many at once, resumable, with one table.

    submitted/ ── handed ──▶ desk ── one submission each ──▶ workers: choosing,
                              ▲                                 │ reading, mending,
                              │                                 │ staging
    table ◀── marks ◀── gradebook, autograded/ ◀── nbgrader ◀───┘

Each worker grades with nbgrader's own converter, and so with everything that the
course's nbgrader_config.py says; marks are where nbgrader puts them. This package
imports nbgrader; import its modules only where grading is wanted.
"""

from distlab.imports import leave_out_grammars

leave_out_grammars()
