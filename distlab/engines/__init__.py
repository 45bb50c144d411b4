"""Real systems: one small file for each, which runs a learner's function on it.

    from distlab.engines import mpi

    if mpi.is_installed():
        mpi.run(fn, 4)

A lesson builds one idea; here is the production program for it, on this machine, with
the same inputs. Each system is an extra of the course. If one is missing, its file
reports in one line how to install it, so that a lesson can continue without it. Each
starts and ends its processes through `processes`, as everything in distlab does.
"""
