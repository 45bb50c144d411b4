"""Grading with nbgrader: collection, autograding and feedback of submissions.

    inbox ── collect ──▶ submitted ── grade ──▶ autograded, gradebook ──▶ feedback

nbgrader keeps the gradebook, releases, lateness, and the pages of formgrader and
feedback. This package adds what it lacks: students' names from file names, a reader of
damaged or renamed notebooks, a sandbox, and grading of many submissions in parallel.
"""
