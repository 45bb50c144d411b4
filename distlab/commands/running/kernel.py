"""A kernel for one lesson, which is gone at its end."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

from jupyter_client import AsyncKernelManager
from jupyter_core.utils import run_sync

from distlab.commands.running.forked_kernel import ForkedKernel
from distlab.processes import Interrupts
from distlab.processes.folders import new_folder

__all__ = ["Kernel"]


class Kernel:
    """A kernel of this interpreter, in `folder`, from its start to its certain end.

    papermill would lose a kernel that is interrupted while it starts, and let it write
    on the terminal. It is reached through sockets in a private folder, not by ports.

    manager: the kernel manager, for papermill.
    forked: True if it is a fork of a process that has imported torch.
    """

    def __init__(self, folder: Path, *, forked: bool = False):
        # A python3 kernel in the user's home must not win over this environment's.
        os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
        self._folder = folder
        self._private = new_folder(in_memory=False)
        self._log = Path(self._private, "stderr")
        meeting = str(Path(self._private, "kernel.json"))
        self.manager = _Manager(
            kernel_name="python3", transport="ipc", connection_file=meeting
        )
        self.manager.clients = []
        if forked:
            how = {"kernel_id": self._private, "kernel_spec": self.manager.kernel_spec}
            self.manager.provisioner = ForkedKernel(parent=self.manager, **how)

    def __enter__(self):
        return self

    def start(self) -> None:
        """Start the process; keep its output outside of cells for `obituary`."""
        start = run_sync(self.manager.start_kernel)
        no_history = ["--HistoryManager.hist_file=:memory:"]
        where = str(self._folder)
        with self._log.open("wb") as log:
            start(cwd=where, stdout=log, stderr=log, extra_arguments=no_history)

    def obituary(self, what: str) -> str:
        """Return a line about the kernel's end, and below it its last lines of output.

        what: "died" or "did not start".
        """
        how = ""
        if self.manager.has_kernel:
            status = run_sync(self.manager.provisioner.poll)()
            how = f": exit status {status}" if status is not None else ""
            if status is not None and status < 0:
                how = f": ended by {signal.Signals(-status).name}"
        if how.endswith("SIGKILL"):
            how += "; the system does that when memory runs out"
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "\n".join([f"the kernel {what}{how}", *lines[-5:]])

    def __exit__(self, *_):
        with Interrupts():  # a second Ctrl-C waits until the kernel is gone
            run_sync(self._end)()
            shutil.rmtree(self._private, ignore_errors=True)

    async def _end(self):
        # Tasks that wait for an interrupted cell would go on, and report it too late.
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for client in self.manager.clients:
            client.stop_channels()
        if await self.manager.is_alive():
            await self.manager.shutdown_kernel()
        else:
            await self.manager.cleanup_resources()


class _Manager(AsyncKernelManager):
    """A manager that keeps its clients, which papermill leaves running."""

    def client(self, **settings):
        self.clients.append(super().client(**settings))
        return self.clients[-1]
