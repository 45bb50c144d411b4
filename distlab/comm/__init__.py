"""`Comm`: a rank's messages to and from the other ranks, over torch.distributed.

    algorithm ── comm.sendrecv(...) ──▶ Comm ──▶ torch process group (gloo, NCCL)
                                         │
                                         └─────▶ Recorder: kind, peer, duration

An algorithm takes a `Comm` first and uses nothing else, so the same function runs on
real processes, under torchrun and on a simulated fabric. Between two ranks, messages
arrive in the order in which they were sent.

For untrusted ranks, `relayed_comm` carries messages through another process instead.

A send ends when the receiver has posted its receive. Two ranks that both send first
and receive second therefore wait for each other for ever; `sendrecv` does both at once.
"""

from distlab.comm.comm import Comm, Request

__all__ = ["Comm", "Request"]
