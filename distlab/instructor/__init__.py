"""The instructor's day, with nbgrader: collect, grade, give back.

    inbox ── collect ──▶ submitted ── grade ──▶ autograded, gradebook ──▶ feedback

What nbgrader does well stays nbgrader's: the gradebook, releases, lateness, the pages
of formgrader and feedback. Ours is what it lacks: finding out whose a file is, reading
what is hardly a notebook, a sandbox, many submissions at a time.
"""
