"""Pipeline parallelism: a model cut into stages, and schedules that keep them busy."""

from distlab.train.pipeline.engine import play
from distlab.train.pipeline.model import PipelinedModel, clip_gradients
from distlab.train.pipeline.schedule import Schedule, Work
from distlab.train.pipeline.schedules import (
    dual_pipe_v,
    gpipe,
    interleaved,
    naive,
    of_torch,
    one_f_one_b,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from distlab.train.pipeline.search import balanced, zero_bubble_search
from distlab.train.pipeline.timing import Timed, Times, cells_of, timed

__all__ = [
    "PipelinedModel",
    "Schedule",
    "Timed",
    "Times",
    "Work",
    "balanced",
    "cells_of",
    "clip_gradients",
    "dual_pipe_v",
    "gpipe",
    "interleaved",
    "naive",
    "of_torch",
    "one_f_one_b",
    "play",
    "timed",
    "zero_bubble_h1",
    "zero_bubble_h2",
    "zero_bubble_search",
    "zero_bubble_v",
]
