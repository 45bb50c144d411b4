"""Kernels of JupyterLab's server that end with it, even if it is killed.

A kernel checks every second if its server is alive, unless its cell is in compiled
code, which may be for ever. The parent-death signal of Linux needs no such check.
"""

import os
from functools import partial

from jupyter_server.services.kernels.kernelmanager import ServerKernelManager

from distlab.processes.child import die_with

__all__ = ["LabKernel"]


class LabKernel(ServerKernelManager):
    """Jupyter's own manager of a kernel; on Linux the kernel dies with the server."""

    async def start_kernel(self, *args, **options):
        """Start the kernel; a restart has the same options."""
        if self.has_trait("transport_encryption"):  # else each kernel warns of it
            self.transport_encryption = "auto"
        options["preexec_fn"] = partial(die_with, os.getpid())
        return await super().start_kernel(*args, **options)
