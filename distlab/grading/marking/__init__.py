"""Marks submissions: their code runs in jails, and the marks are given outside.

    nbgrader: Marking            trusted: the gradebook's sources, the score
      └ process server           warm: torch, distlab.grading, ipykernel
          ├ keeper ── jail ── kernel     the submission's own cells, one by one
          └ marker ── jail ── ranks      one grade cell: its checks, the verdicts

A submission's cells run in a kernel, in a jail. What a grade cell needs from them is
packed there, and handed as bytes to a marker, which is started for this one cell. The
marker opens another jail before it hears what is to be checked, runs the cell's source
as it is in the gradebook, and sends the packed things into that jail, where they are
opened. What comes out of there is plain data. So the submission's code never is in a
process that knows what is right, and never writes where a score is read.
"""
