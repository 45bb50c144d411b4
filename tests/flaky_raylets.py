"""The process of a local Ray cluster: some nodes fail, or have GPUs that are not there.

FAILING_NODES names a file that lists those that fail, the first node has number 0.
"""

import json
import os
from pathlib import Path
from unittest import mock

from distlab.engines.ray import local


def main(child):
    """As `local.main`, with nodes that fail."""
    from ray._private.node import Node

    file = Path(os.environ["FAILING_NODES"])
    start = Node.__init__

    def start_or_fail(self, *args, **how):
        left = json.loads(file.read_text())
        file.write_text(json.dumps([number - 1 for number in left]))
        start(self, *args, **how)
        if 0 in left:
            raise RuntimeError("timed out during startup")

    with mock.patch.object(Node, "__init__", start_or_fail):
        local.main(child)


def with_gpus(child):
    """As `local.main`, with nodes of two GPUs each, as far as Ray is concerned."""
    settings = local._Raylets._settings
    counted = mock.patch.object(
        local._Raylets, "_settings", lambda *args: settings(*args) | {"num_gpus": 2}
    )
    with counted:
        local.main(child)


def says_its_gpus(child):
    """As a process of a world: send CUDA_VISIBLE_DEVICES."""
    child.send(os.environ["CUDA_VISIBLE_DEVICES"].encode())
