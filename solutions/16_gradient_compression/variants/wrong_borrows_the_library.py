"""Calls the library's hook."""

from distlab.train.compression import Compressed, TopK

POINTS = 3.0
HINT = "distlab's own is not available here"


class TopKHook:
    def __init__(self, density):
        self.hook = Compressed(TopK(density))

    def __call__(self, comm, bucket):
        self.hook(comm, bucket)


class SmallHook(TopKHook):
    pass
