"""Gradient compression: fewer bytes on the wire per step of data parallel training.

    Compressed(TopK(0.01))                       a hook, with error feedback
    OverlappedDataParallel(comm, model, hook=hook)  ours takes it
    ddp.register_comm_hook(comm, hook)            and so does PyTorch's

Codes that can be summed while compressed (Cast, RandomK, PowerSGD) are sent in an
all-reduce; all others in an all-gather of codes, or both ways with TwoWay.
"""

from distlab.train.compression.compressor import Compressor, quantized_gather
from distlab.train.compression.float8 import FP8, MX
from distlab.train.compression.hook import Compressed
from distlab.train.compression.low_rank import PowerSGD
from distlab.train.compression.quantize import QSGD, Cast, Quantized, Sign
from distlab.train.compression.sparsify import RandomK, SparseTernary, TopK
from distlab.train.compression.two_way import TwoWay

__all__ = [
    "FP8",
    "MX",
    "QSGD",
    "Cast",
    "Compressed",
    "Compressor",
    "PowerSGD",
    "Quantized",
    "RandomK",
    "Sign",
    "SparseTernary",
    "TopK",
    "TwoWay",
    "quantized_gather",
]
