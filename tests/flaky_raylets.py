"""The process of a local Ray cluster, in which the nodes that a file lists fail."""

import json
import os
from pathlib import Path
from unittest import mock

from distlab.engines.ray import local


def main(child):
    """As `local.main`; FAILING_NODES names the file, the first node has number 0."""
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
