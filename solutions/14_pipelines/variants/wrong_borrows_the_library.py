"""Asks the library."""

POINTS = 7.0
HINT = "Nothing of your own does the work"


def one_f_one_b(stages, microbatches):
    from distlab.train import pipeline

    return [list(row) for row in pipeline.one_f_one_b(stages, microbatches).stages]
