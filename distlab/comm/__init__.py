"""`Comm`: everything a rank may do with the other ranks, over torch.distributed.

    algorithm ── comm.sendrecv(...) ──▶ Comm ──▶ torch process group (gloo, NCCL)
                                         │
                                         └─────▶ Recorder: what, with whom, how long

An algorithm takes a `Comm` first and uses nothing else, so the same function runs on
real processes, under torchrun and on a simulated fabric. Between two ranks, messages
arrive in the order in which they were sent.

Where ranks are not trusted, `relayed` carries messages through another process instead.

A send ends when the receiver has asked for the message. Two ranks that both send
first and receive second therefore wait for each other for ever; `sendrecv` is the way
to do both at once.
"""

from distlab.comm.comm import Comm, Request

__all__ = ["Comm", "Request"]
