"""Calls to another process, a rank or a worker, and their results.

`serialize` serializes functions and results, `raised` describes an exception, `places`
finds the learner's own lines of its traceback, and `console` shows printed lines.
`progress` shows a progress line, in the way that the notebook allows (`notebook`).
Nothing here starts a process, or loads torch.
"""
