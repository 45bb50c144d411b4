"""A call's way to a process and back, whatever the process is: a rank or a worker.

`travel` makes bytes of functions and results, `raised` facts of an exception, `places`
the learner's own lines of its traceback, and `console` shows what was printed.
`progress` tells how far it is, as the notebook around us can show it (`notebook`).
Nothing here starts a process, or loads torch.
"""
