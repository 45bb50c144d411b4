"""Progress: a learner's cells run, predictions and solved steps, in their own file.

    from distlab import progress

    progress()                  # as last line of a cell; `distlab progress` elsewhere

    a cell ran ─▶ NotebookWatch ─▶ Record, a file ─▶ progress_summary ─▶ page
                               lessons, exercises ──┘   in a cell, a terminal, a file

Only a notebook that a person has open is recorded, and only on this machine. Setting
DISTLAB_PROGRESS=off turns it off.
"""

__all__ = ["progress"]


def progress():
    """Return the page with the recorded progress, and the next thing to do."""
    from distlab.learner.progress.page import Page
    from distlab.learner.progress.progress_summary import progress_summary
    from distlab.learner.progress.record import Record, record_path

    return Page(progress_summary(Record(record_path())))
