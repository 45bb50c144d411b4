"""A cluster of this machine's own: a process that starts, kills and adds its nodes.

    cell ── LocalCluster ── frames ──▶ main: raylets of the head, node 0, and others
         └─ ray.init ──────────────────────▶ the head

All listen on loopback, as 127.0.0.1. They end with that process, which ends with the
cell's.
"""

import json
import os
import signal
import socket
import time
from contextlib import ExitStack
from functools import partial
from unittest import mock

from distlab.errors import EngineFailed
from distlab.patience import patience
from distlab.processes import Child, Ended, FrameReceived, Lines, Processes
from distlab.processes.child_processes import children
from distlab.units import MB

__all__ = ["LocalCluster", "attach", "main"]

_LOOPBACK = "127.0.0.1"
_ENTRY = f"{__name__}:main"
_STARTED_S = 240.0
_ATTEMPTS = 3
_STORE_BYTES = 80 * MB  # the least that Ray accepts
_AGENT_PORTS = ("metrics_agent_port", "metrics_export_port")
_AGENT_PORTS += ("dashboard_agent_listen_port", "runtime_env_agent_port")
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    # On a busy machine a raylet's agents take longer to start than its 30 s.
    "RAY_agent_register_timeout_ms": "300000",
    # Ray knows after 5 s that a node is gone, not after 13 s.
    "RAY_health_check_period_ms": "1000",
}


def attach(address: str) -> bool:
    """Connect this process to a cluster; return False if it was connected before.

    Raises: EngineFailed if there is none.
    """
    import ray

    if ray.is_initialized():
        return False
    loopback = address.startswith(f"{_LOOPBACK}:")
    from ray._private import worker

    own = {"_node_ip_address": _LOOPBACK} if loopback else {}
    try:
        # Its thread for errors would print, when a node dies, what `run` raises.
        silent = mock.patch.object(worker, "listen_error_messages", lambda *_: None)
        with _loopback_stays(loopback), silent:
            ray.init(address, log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = str(error).strip().splitlines()[0]
        raise EngineFailed(
            f"no Ray cluster answers at {address!r}: {said}\n"
            "On the first machine: ray start --head; on each other one: ray start "
            "--address=HOST:6379. Then ray_cluster('auto') on any of them."
        ) from None
    return True


def _loopback_stays(also):
    """Have Ray leave 127.0.0.1 as it is: it would take the outer address instead."""
    from ray._private import services

    kept = services.resolve_ip_for_localhost if not also else lambda host: host
    return mock.patch.object(services, "resolve_ip_for_localhost", kept)


class LocalCluster:
    """A Ray cluster on this machine, whose nodes each claim some CPUs.

    The process of the cell is connected to the head, so any other may be killed.
    address: the head's. A start that fails is repeated: Ray gives a node 30 s, too few
    on a busy machine, and its head starts once in a process.

    Raises: EngineFailed if it does not start.
    """

    def __init__(self, nodes: int, cpus: int):
        self._processes, self.address = None, ""
        try:
            self._repeat(lambda until: self._start(cpus, until))
            for _ in range(nodes - 1):
                self.add_node(cpus)
        except BaseException:
            self.close()
            raise

    def _start(self, cpus, until):
        self.close()
        how = {"disk_folder": True, "environment": _SETTINGS}
        self._processes = Processes(1, _ENTRY, **how)
        self._said = ""
        folder = self._processes.disk_folder
        self.address = self._ask(until, start=cpus, folder=folder)

    def _repeat(self, start):
        """Call `start` until it succeeds, or may not be repeated."""
        until = time.monotonic() + patience(_STARTED_S)
        for left in reversed(range(_ATTEMPTS)):
            try:
                return start(until)
            except EngineFailed:
                if not left or time.monotonic() > until:
                    raise

    def _ask(self, until, **request):
        """Return the answer to a request.

        Raises: EngineFailed if there is none.
        """
        self._processes.send(0, json.dumps(request).encode())
        while (left_s := until - time.monotonic()) > 0:
            for event in self._processes.poll(left_s):
                if isinstance(event, FrameReceived):
                    answer = json.loads(event.payload)
                    if "failed" in answer:
                        raise self._failed(f"failed: {answer['failed']}")
                    return answer["done"]
                if isinstance(event, Lines):
                    self._said += event.text
                elif isinstance(event, Ended):
                    raise self._failed("ended")
        raise self._failed(f"did not answer within {patience(_STARTED_S):g} s")

    def _failed(self, how):
        last = "\n".join(self._said.strip().splitlines()[-6:])
        return EngineFailed(f"the process of the Ray cluster {how}. It said:\n{last}")

    def kill_node(self, node_id: str) -> None:
        """Kill a node at once, with all its processes."""
        self._ask(time.monotonic() + patience(_STARTED_S), kill=node_id)

    def add_node(self, cpus: int) -> None:
        """Start one more node."""
        self._repeat(lambda until: self._ask(until, add=cpus))

    def close(self) -> None:
        """End all of it, and remove its folder."""
        if self._processes is not None:
            self._processes.stop()


def main(child: Child) -> None:
    """Keep the nodes of a cluster, as the owner's frames request."""
    nodes = None
    while True:
        request = json.loads(child.receive())
        if "start" in request:
            nodes = _Raylets(request["folder"])
        before = children(os.getpid())
        try:
            answer = {"done": nodes.obey(request)}
        except Exception as error:  # Ray's own are of this class
            for pid in set(children(os.getpid())) - set(before):
                os.kill(pid, signal.SIGKILL)
            answer = {"failed": str(error)}
        child.send(json.dumps(answer).encode())


class _Raylets:
    """The raylets of a cluster. Their sockets have short names, as the system asks."""

    def __init__(self, folder):
        from ray._private import services

        self._folder, self._count = folder, 0
        self._started, self._port = {}, 0
        services.start_ray_process = partial(
            self._start_process, services.start_ray_process
        )
        os.environ["RAY_TMPDIR"] = folder
        os.makedirs(os.path.join(folder, "ray"))

    def obey(self, request):
        """Do what a frame of the owner requests; return the head's address."""
        if "start" in request:
            self.start(request["start"])
        elif "kill" in request:
            self.kill(request["kill"])
        else:
            self.add(request["add"])
        return self._cluster.address

    def start(self, cpus):
        """Start the head."""
        from ray.cluster_utils import Cluster

        head = self._settings(cpus) | {"include_dashboard": False}
        with _loopback_stays(True):
            how = {"head_node_args": head, "shutdown_at_exit": False}
            self._cluster = Cluster(True, **how)

    def _start_process(self, start, command, kind, *args, **how):
        """Start one of Ray's processes; tell a raylet the port that its agent gets.

        Ray tells the agent only. The raylet would wait until that has written it to a
        file, and ends after 15 s: an agent of a busy machine takes longer. Older Rays
        have no such file.
        """
        from ray import _raylet

        if kind == "raylet" and hasattr(_raylet, "DASHBOARD_AGENT_LISTEN_PORT_NAME"):
            command = [*command, f"--dashboard_agent_listen_port={self._port}"]
        return start(command, kind, *args, **how)

    def _settings(self, cpus):
        self._count += 1
        sockets = {
            f"{name}_socket_name": os.path.join(self._folder, f"{name[0]}{self._count}")
            for name in ("plasma_store", "raylet")
        }
        how = {"node_ip_address": _LOOPBACK, "object_store_memory": _STORE_BYTES}
        ports = dict(zip(_AGENT_PORTS, _free_ports(len(_AGENT_PORTS)), strict=True))
        self._port = ports["dashboard_agent_listen_port"]
        return how | sockets | ports | {"num_cpus": cpus}

    def add(self, cpus):
        """Start a node."""
        node = self._cluster.add_node(wait=False, **self._settings(cpus))
        self._started[node.node_id] = node

    def kill(self, node_id):
        """Kill a node with its raylet, which must not stay as a zombie."""
        node = self._started.pop(node_id)
        self._cluster.remove_node(node, allow_graceful=False)


def _free_ports(count):
    """Return ports that no process uses now."""
    with ExitStack() as stack:
        taken = [
            stack.enter_context(socket.create_server((_LOOPBACK, 0)))
            for _ in range(count)
        ]
        return [listener.getsockname()[1] for listener in taken]
