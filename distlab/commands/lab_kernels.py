"""In JupyterLab's server: kernels that end with it, however it ends.

A kernel looks every second whether its server is still there, unless its cell is in
compiled code, which may be for ever. The system does not have to look.
"""

import os
from functools import partial

from jupyter_server.services.kernels.kernelmanager import ServerKernelManager

from distlab.processes.child import die_with

__all__ = ["LabKernel"]


class LabKernel(ServerKernelManager):
    """Jupyter's own manager of a kernel; on Linux the kernel dies with the server."""

    async def start_kernel(self, *args, **options):
        """Start it; a restart has the same options."""
        if self.has_trait("transport_encryption"):  # else each kernel warns of it
            self.transport_encryption = "auto"
        options["preexec_fn"] = partial(die_with, os.getpid())
        return await super().start_kernel(*args, **options)
