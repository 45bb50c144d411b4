"""Gives every rank the random numbers of rank 0, where the number of ranks changed."""

POINTS = 7.0
HINT = "random numbers begin anew, with job.begin(comm)"
REPLACE = {'return state | {"step": step, "model": saved["model"]}': "return saved"}
