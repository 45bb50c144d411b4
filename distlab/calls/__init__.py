"""Calls to another process, a rank or a worker, and their results.

`serialize` serializes functions and results, `failure_location` describes an exception
by the learner's own lines of its traceback, and `printed_output` shows printed lines.
`progress` shows a progress line, in the way that `notebook_frontend` allows.
Nothing here starts a process, or loads torch.
"""
