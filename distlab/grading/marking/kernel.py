"""A submission's kernel: an ipykernel as everybody has, which prints only so much."""

import json
import os
import sys

from ipykernel.iostream import OutStream
from ipykernel.kernelapp import IPKernelApp
from traitlets.config import Config

from distlab.processes import Child
from distlab.processes.child import on_its_own
from distlab.processes.server_handle import ServerHandle

__all__ = ["LimitedStream", "main"]


def main(child: Child) -> None:
    """Be the kernel that the owner's first frame describes, until killed."""
    on_its_own()
    told = json.loads(child.receive())
    ServerHandle.one_for_all()  # nothing of a user's has run yet
    if "matplotlib" in sys.modules:  # imported before this was a kernel
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        sys.modules["matplotlib"].use(os.environ["MPLBACKEND"], force=False)
    os.environ["DISTLAB_STILLS"] = "svg"  # no player is kept
    LimitedStream.most_bytes = told["output_bytes"]
    LimitedStream.most_lines = told["output_lines"]
    config = Config()
    config.Session.key = told["key"].encode()
    config.HistoryManager.enabled = False
    config.IPKernelApp.update(told["connection"])
    config.IPKernelApp.connection_file = told["connection"]["ip"] + ".json"
    config.IPKernelApp.outstream_class = f"{__name__}.LimitedStream"
    app = IPKernelApp.instance(config=config)
    app.initialize([])
    child.send(b"ready")
    app.start()


class LimitedStream(OutStream):
    """Standard output or error of which a cell has only so much.

    What a cell prints without end is dropped here, before it is a message. Who gets
    around this meets the limit at the other end.
    """

    most_bytes, most_lines = 10**6, 2000
    _cell, _bytes, _lines = None, 0, 0

    def write(self, string: str) -> int | None:
        """Write what still fits."""
        cell = self.parent_header.get("msg_id")
        if cell != self._cell:
            self._cell, self._bytes, self._lines = cell, 0, 0
        if self._lines > self.most_lines or self._bytes > self.most_bytes:
            return len(string)
        self._bytes += len(string)
        self._lines += string.count("\n")
        if self._lines > self.most_lines or self._bytes > self.most_bytes:
            string = string[: self.most_bytes]
            super().write("\n".join(string.split("\n")[: self.most_lines]))
            super().write("\n... more was printed than is kept ...\n")
            return len(string)
        return super().write(string)
