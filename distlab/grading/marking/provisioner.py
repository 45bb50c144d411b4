"""How nbclient comes to a kernel in a jail: a kernel provisioner, and its manager."""

import json
import os
import signal
import time

import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Dict, Float

from distlab.preloads import KERNEL
from distlab.processes import Ended, Frame, Processes

__all__ = ["DeskManager", "DeskProvisioner", "KernelNotThere"]

_END_S = 60.0  # a full jail takes a while on a busy machine
_MOST_MESSAGE_BYTES, _MOST_MESSAGES = 2**24, 200


class KernelNotThere(Exception):
    """A kernel could not be started."""


class DeskProvisioner(KernelProvisionerBase):
    """Starts a kernel in a jail, and ends both.

    told: what its keeper is told: isolation, files, output_bytes, output_lines.
    """

    told = Dict()
    start_s = Float(60.0)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.isolation, self.why = "", ""
        self._keeper, self._news, self._status = None, [], None

    @property
    def has_process(self) -> bool:
        """Return whether there is a kernel, alive or dead, that is not cleaned up."""
        return self._keeper is not None

    async def launch_kernel(self, cmd: list, **kwargs) -> dict:
        """Start a keeper; return how to talk to the kernel in its jail."""
        self._status = None
        entry = "distlab.grading.marking.keeper:main"
        self._keeper = Processes(1, entry, preload=KERNEL)
        told = self.told | {"owner": os.getpid()}
        self._keeper.send(0, json.dumps(told).encode())
        hello = self._wait_for("connection", self.start_s)
        if hello is None:
            said = self.why or "it did not start in time"
            self.stop()
            raise KernelNotThere(said)
        self.isolation = hello["isolation"]
        self.connection_info = {
            **hello["connection"],
            "key": hello["key"].encode(),
            "signature_scheme": "hmac-sha256",
        }
        return self.connection_info

    def _wait_for(self, word, seconds):
        """Return the keeper's next news that have this word; None if it has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._status is None:
            for news in self._hear(deadline - time.monotonic()):
                if word in news:
                    return news
        return None

    def _hear(self, seconds):
        """Return what the keeper tells, and note the end of it or of its kernel."""
        heard = []
        for event in self._keeper.poll(max(0.0, seconds)):
            if isinstance(event, Frame):
                heard.append(json.loads(event.payload))
                if "ended" in heard[-1]:
                    self._status, self.why = heard[-1]["ended"], heard[-1]["why"]
            elif isinstance(event, Ended):
                self.why = self.why or f"its keeper ended with {event.status}"
                self._status = event.status if self._status is None else self._status
            else:
                self.log.warning("The kernel's keeper: %s", event.text.strip())
        return heard

    async def poll(self) -> int | None:
        """Return None while the kernel runs, then its exit status."""
        if self._keeper is not None and self._status is None:
            self._hear(0)
        return self._status if self._keeper is not None else 0

    async def wait(self) -> int | None:
        """Have everything gone; return the kernel's exit status."""
        self.stop()
        return self._status

    async def send_signal(self, signum: int) -> None:
        """Send the kernel a signal; from outside of its jail it has no number."""
        if signum == signal.SIGKILL:
            self.stop()
        elif self._keeper is not None:
            self._keeper.send(0, json.dumps({"signal": int(signum)}).encode())

    async def kill(self, restart: bool = False) -> None:
        """Have everything gone."""
        self.stop()

    async def terminate(self, restart: bool = False) -> None:
        """Have everything gone."""
        self.stop()

    async def cleanup(self, restart: bool = False) -> None:
        """Have everything gone."""
        self.stop()

    async def pre_launch(self, **kwargs) -> dict:
        """Add nothing; the kernel's surroundings are its jail's."""
        return {"cmd": []}

    def stop(self) -> None:
        """Close the jail, and return when all that was in it is gone."""
        if self._keeper is None:
            return
        self._keeper.send(0, b'{"end": true}')
        deadline = time.monotonic() + _END_S
        gone = False
        while not gone and self._keeper.alive and time.monotonic() < deadline:
            gone = any("gone" in news for news in self._hear(0.5))
        self._keeper.stop()
        self._keeper = None
        if self._status is None:
            self._status = -signal.SIGKILL


class DeskManager(AsyncKernelManager):
    """A kernel manager for one kernel in a jail, whatever the notebook asks for."""

    told = Dict()

    def __init__(self, **kwargs):
        context = zmq.asyncio.Context()
        # A kernel is not to be trusted: a message is not larger than this, more than
        # so many wait on its side, and there is one connection, before any cell runs.
        context.setsockopt(zmq.MAXMSGSIZE, _MOST_MESSAGE_BYTES)
        context.setsockopt(zmq.RCVHWM, _MOST_MESSAGES)
        context.setsockopt(zmq.RECONNECT_IVL, -1)
        context.setsockopt(zmq.SNDTIMEO, 5000)  # and not for ever, where none is left
        super().__init__(context=context, **kwargs)
        self._created_context = True  # so that it is ended with the kernel
        self._kernel_spec = KernelSpec(language="python", interrupt_mode="signal")
        self.provisioner = DeskProvisioner(parent=self, told=self.told)

    def client(self, **kwargs):
        """Return a client whose sockets are made by the same rules."""
        return super().client(context=self.context, **kwargs)
