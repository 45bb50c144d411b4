"""Kernels that are forks of a process with the imports of most lessons.

lesson process              process server            kernel
──────────────              ──────────────            ──────
ForkedKernel ── session ──▶ imports WARM, fork() ───▶ main(child) ─▶ ipykernel
                                                          └ forks a server for its ranks

They start in milliseconds, and so do their ranks: twelve seconds less for a lesson. But
a lesson's missing import goes undetected, and torch is loaded also in parts 1 and 2,
which must do without it.
"""

import json
import os
import signal
import subprocess
import sys

from jupyter_client.provisioning import LocalProvisioner

from distlab.processes import Child, Ended, Processes, on_its_own
from distlab.processes.server_handle import ServerHandle

__all__ = ["ForkedKernel", "main"]

WARM = (
    "ipykernel.kernelapp",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "matplotlib.backends.backend_svg",
    "sklearn.datasets",
    "anywidget",
    "distlab.show",
    "distlab.train",
    "distlab.collectives",
    "distlab.learner.predictions",
    "distlab.learner.quiz",
    "distlab.launch",
)


class ForkedKernel(LocalProvisioner):
    """A provisioner, by which Jupyter starts, signals and ends a forked kernel."""

    async def launch_kernel(self, cmd, *, cwd, env, stderr, **_):
        """Fork the kernel; its output outside of cells goes to `stderr`."""
        self.process = _ForkedKernel(cmd, cwd, env, stderr)
        self.pid = self.pgid = self.process.pid
        self.cwd = cwd
        return self.connection_info


class _ForkedKernel:
    """A forked kernel with the interface of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, cmd, cwd, env, log):
        entry = f"{__name__}:main"
        surroundings = {"preload": WARM, "environment": env, "shared": [log.fileno()]}
        self._processes = Processes(1, entry, **surroundings)
        self._status = None
        arguments = cmd[cmd.index("-f") :]
        order = {"arguments": arguments, "directory": cwd}
        self._processes.send(0, json.dumps(order).encode())
        while self._processes.pids[0] is None:
            self._look(0.1)
        self.pid = self._processes.pids[0]

    def _look(self, timeout_s):
        for what in self._processes.poll(timeout_s):
            if isinstance(what, Ended):
                self._status = what.status
                self._processes.stop()

    def poll(self):
        """Return the exit status, None as long as it runs."""
        if self._status is None:
            self._look(0)
        return self._status

    def wait(self, timeout=None):
        """Wait until it has ended; return the exit status."""
        if self._status is None and not self._processes.wait_ended(timeout or 1e9):
            raise subprocess.TimeoutExpired("the kernel", timeout)
        return self.poll()

    def send_signal(self, number):
        """Send the kernel a signal."""
        self._processes.signal(0, number)

    def kill(self):
        """Kill the kernel."""
        self.send_signal(signal.SIGKILL)


def main(child: Child) -> None:
    """Run the kernel that the owner's request describes."""
    on_its_own()
    order = json.loads(child.receive())
    os.setsid()  # interrupts go to the kernel's process group
    for descriptor in (1, 2):
        os.dup2(child.shared[0], descriptor)
    sys.modules["torch"].set_num_threads(1)  # a second one would spin
    ServerHandle.one_for_all()  # its ranks are forks of this process as it is now
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order["directory"])
    sys.path.insert(0, "")
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(order["arguments"])
