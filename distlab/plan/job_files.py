"""Job files of a plan: torchrun, Slurm, Kubernetes and Ray start the same script.

    plan ─▶ JobFiles ─┬▶ torchrun()    a command for each host
                      ├▶ slurm()       sbatch: one task a node, each starts its ranks
                      ├▶ kubernetes()  an Indexed Job, and a service for its names
                      └▶ ray()         a placement group of whole nodes

All place a gang: no rank starts before each node has its place. All restart from the
last checkpoint, so the script must find it by itself.

Source: the documentation of torchrun (c10d rendezvous), sbatch, Kubernetes 1.33 (Job:
completionMode Indexed, backoffLimitPerIndex) and Ray (placement groups).
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from distlab.errors import InvalidArgument

__all__ = ["JobFiles"]

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_PORT = 29_500


@dataclass(frozen=True)
class JobFiles:
    """A script on `nodes` nodes of `per_node` GPUs, one rank for each GPU.

    name: of the job, as Kubernetes allows it: small letters, digits, dashes.
    script, args: what each rank runs. image: of the containers.
    hours: the limit of one run of the job, after which it is queued again.
    warn_s: seconds before the limit at which the ranks get SIGUSR1, to save: more than
        a save takes, see `Plan.save_s`.
    restarts: how often a failed node's pod, or the gang, is started again.
    shared: where checkpoints are, in the containers. queue: Kueue's, "" for none.

    Raises: InvalidArgument.
    """

    name: str
    nodes: int
    per_node: int
    script: str
    args: Sequence[str] = ()
    _: KW_ONLY
    image: str = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"
    hours: float = 24.0
    warn_s: int = 300
    restarts: int = 10
    shared: str = "/shared"
    queue: str = ""

    def __post_init__(self):
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(
                f"a job's name is small letters, digits and dashes, at most 40, and "
                f"begins with a letter: {self.name!r} is none."
            )
        for name in ("nodes", "per_node", "restarts", "warn_s"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(
                    f"{name} is a whole number from 1 up, and got {value!r}."
                )
        if not self.hours * 3600 > self.warn_s:
            raise InvalidArgument(
                f"a limit of {self.hours} hours leaves no time to be warned "
                f"{self.warn_s} s before it."
            )
        if isinstance(self.args, str):
            raise InvalidArgument(f"args is a list of words, and got {self.args!r}.")

    @classmethod
    def of(cls, plan, name: str, script: str, args: Sequence[str] = (), **how):
        """Return the files of a `Plan`: its nodes, and time to save before the end."""
        per_node = min(plan.cluster.per_node, plan.cluster.gpus)
        how = {"warn_s": max(60, round(2 * plan.save_s))} | how
        return cls(name, plan.cluster.gpus // per_node, per_node, script, args, **how)

    def torchrun(self, head: str = "HOST") -> str:
        """Return the script to run on each host; `head` is the first one's name."""
        place = (
            "--standalone" if self.nodes == 1 else self._meeting(f'"{head}:{_PORT}"')
        )
        return f"#!/bin/bash\n# The same on each of {self.nodes} hosts.\n" + self._call(
            f"exec torchrun {place}"
        )

    def slurm(self) -> str:
        """Return a batch script: `sbatch FILE`. Ends by itself, queued again, go on."""
        place = self._meeting(f'"${{hosts[0]}}:{_PORT}"', '"$SLURM_JOB_ID"')
        rank = self._rank()
        return f"""#!/bin/bash
#SBATCH --job-name={self.name}
#SBATCH --nodes={self.nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={self.per_node}
#SBATCH --exclusive
#SBATCH --time={_clock(self.hours)}
#SBATCH --signal=B:USR1@{self.warn_s}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={self.name}-%j.out
# Slurm grants all nodes at once: a gang. Before the limit this shell gets SIGUSR1 and
# passes it to the ranks, which save and end; then the job is put back into the queue.
set -euo pipefail
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
again() {{
    srun --overlap --ntasks-per-node=1 pkill -USR1 -f -- {rank} || true
    wait "$ranks" || true
    scontrol requeue "$SLURM_JOB_ID"
}}
trap again USR1
{self._call(f"srun --kill-on-bad-exit=1 torchrun {place}").rstrip()} &
ranks=$!
wait "$ranks"
"""

    def kubernetes(self) -> str:
        """Return a headless service and an Indexed Job, as two YAML documents.

        JSON is YAML: nothing needs an indent. A scheduler for gangs (Kueue, Volcano)
        holds the job back until all its pods have a place; plain Kubernetes does not.
        """
        return "---\n".join(
            json.dumps(each, indent=2) + "\n" for each in (self._service(), self._job())
        )

    def _service(self):
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": self.name},
            "spec": {
                "clusterIP": "None",  # a name for each pod, no address in common
                "publishNotReadyAddresses": True,  # they meet before they are ready
                "selector": {"batch.kubernetes.io/job-name": self.name},
                "ports": [{"name": "rendezvous", "port": _PORT}],
            },
        }

    def _job(self):
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "labels": self._labels()},
            "spec": {
                "completionMode": "Indexed",
                "completions": self.nodes,
                "parallelism": self.nodes,
                "backoffLimitPerIndex": self.restarts,
                "template": {"spec": self._pod()},
            },
        }

    def _labels(self):
        return {"kueue.x-k8s.io/queue-name": self.queue} if self.queue else {}

    def _pod(self):
        head = f"{self.name}-0.{self.name}:{_PORT}"
        gpus = {"nvidia.com/gpu": str(self.per_node)}
        rank = self._rank()
        met = ["bash", "-c", f"pgrep -f -- {rank} > /dev/null"]
        # A script that hangs no longer touches this file, as it does after each step.
        alive = [
            "bash",
            "-c",
            'test -z "$(find /dev/shm/alive -mmin +15 2> /dev/null)"',
        ]
        return {
            "subdomain": self.name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": self.warn_s,
            "containers": [
                {
                    "name": "ranks",
                    "image": self.image,
                    "command": ["bash", "-c", self._in_pod(head)],
                    "resources": {"limits": gpus, "requests": gpus},
                    "ports": [{"containerPort": _PORT}],
                    "volumeMounts": [
                        {"name": "shm", "mountPath": "/dev/shm"},
                        {"name": "shared", "mountPath": self.shared},
                    ],
                    "livenessProbe": {
                        "exec": {"command": alive},
                        "initialDelaySeconds": 60,
                        "periodSeconds": 30,
                        "failureThreshold": 4,
                    },
                    "readinessProbe": {"exec": {"command": met}, "periodSeconds": 10},
                }
            ],
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
                {
                    "name": "shared",
                    "persistentVolumeClaim": {"claimName": f"{self.name}-data"},
                },
            ],
        }

    def _in_pod(self, head):
        place = self._meeting(head, self.name)
        return self._call(f"exec torchrun --max-restarts {self.restarts} {place}")

    def ray(self) -> str:
        """Return a Python script: `python FILE` on a machine of the Ray cluster."""
        words = json.dumps([self.script, *self.args])
        about = f"{self.name}: {self.nodes} nodes of {self.per_node} GPUs, on Ray."
        return f'''"""{about}"""

import socket
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

NODES, PER_NODE, SCRIPT = {self.nodes}, {self.per_node}, {words}
GPUS = 0 if "--cpu" in sys.argv else PER_NODE


@ray.remote(num_cpus=1, num_gpus=GPUS, max_retries={self.restarts})
def start(node, head, port):
    """Start this node's ranks, and wait for them."""
    place = ["--nnodes", str(NODES), "--nproc-per-node", str(PER_NODE)]
    place += ["--node-rank", str(node), "--master-addr", head, "--master-port", port]
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    return subprocess.run([*launcher, *place, *SCRIPT]).returncode


@ray.remote(num_cpus=0)
def address():
    """Return an address of this node for the ranks to meet at."""
    with socket.create_server(("", 0)) as server:
        return ray.util.get_node_ip_address(), str(server.getsockname()[1])


def main():
    """Place one bundle on each node, all or none, and start the ranks there."""
    ray.init(address="auto")
    bundles = [{{"CPU": 1, "GPU": GPUS}} if GPUS else {{"CPU": 1}}] * NODES
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    ray.get(group.ready())  # a gang: waits until all bundles have a place
    on = [PlacementGroupSchedulingStrategy(group, i) for i in range(NODES)]
    head = ray.get(address.options(scheduling_strategy=on[0]).remote())
    nodes = [start.options(scheduling_strategy=place) for place in on]
    return max(ray.get([node.remote(i, *head) for i, node in enumerate(nodes)]))


if __name__ == "__main__":
    sys.exit(main())
'''

    def _rank(self):
        """Return a pattern of a rank's command line, which does not match itself."""
        return shlex.quote(f"[-]u {re.escape(self.script)}")

    def _meeting(self, endpoint, job=None):
        """Return torchrun's options by which the nodes meet."""
        job = job or self.name
        return (
            f"--nnodes {self.nodes} --rdzv-backend c10d --rdzv-id {job} "
            f"--rdzv-endpoint {endpoint}"
        )

    def _call(self, begin):
        words = " ".join(map(shlex.quote, [self.script, *self.args]))
        return f"{begin} --nproc-per-node {self.per_node} {words}\n"


def _clock(hours):
    minutes = max(1, round(hours * 60))
    days, minutes = divmod(minutes, 24 * 60)
    return f"{days}-{minutes // 60:02}:{minutes % 60:02}:00"
