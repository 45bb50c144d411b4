"""The real systems: one small file for each, which runs a learner's function on it.

    from distlab.engines import mpi

    if mpi.is_installed():
        mpi.run(fn, 4)

What a lesson has built is one idea; here is the program that the world uses for it, on
this machine, with the same inputs. Each system is an extra of the course. A file says
in one line how to add a missing one, so that a lesson can go on without it, and starts
and ends what it needs through `processes`, as everything in distlab does.
"""
