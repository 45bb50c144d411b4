"""Notes of a job that something else starts, for `distlab explain FOLDER`.

    import distlab.watch                                 the script's first line, or
    torchrun ... -m distlab.watch train.py --lr 3        unchanged scripts

Each rank keeps its notes in a folder that outlives it, `distlab-watch` or what the
environment variable DISTLAB_WATCH names; nodes may have one each. The script behaves as
it does unwatched.
"""

from distlab.launch.watched_rank import begin, run_script

__all__ = []

if __name__ == "__main__":
    run_script()
else:
    begin()
