"""A Ray cluster, existing or of this machine's own: its nodes, and places on them."""

import math
import os
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from distlab.engines.ray import is_installed
from distlab.engines.ray.actor import actor_class
from distlab.engines.ray.facts import explain_difference, facts_here
from distlab.engines.ray.node import TOKEN_BYTES
from distlab.engines.ray.processes import NodeAddress, NodesProcesses
from distlab.engines.ray.ranks import RayRanks
from distlab.errors import EngineFailed, EngineMissing, InvalidArgument
from distlab.launch.machine import shared_gpus
from distlab.patience import patience
from distlab.recorder import SharedTrace

__all__ = ["RayCluster", "ray_cluster"]

_HEAD = "node:__internal_head__"
_PLACED_S, _READY_S, _LOOK_S = 30.0, 60.0, 0.5


def ray_cluster(
    address: str | None = None,
    *,
    nodes: int = 3,
    cpus: int = 4,
    strategy: str = "pack",
    cpus_per_rank: float = 1,
) -> "RayCluster":
    """Return a Ray cluster for `run(fn, 8, on=...)`; close it, or use it in `with`.

    address: of a cluster, or "auto" for the one that this machine is part of. Without
        it a cluster of this machine's own is started, which listens on loopback only:
        `nodes` nodes, each with `cpus` CPUs as far as Ray is concerned.
    strategy: "pack" ranks on as few nodes as possible, or "spread" them.
    cpus_per_rank: what Ray reserves for each rank.

    Raises: EngineMissing without Ray; EngineFailed if there is no cluster there;
    InvalidArgument.
    """
    if not is_installed():
        raise EngineMissing.of("ray_cluster", ["ray"], "ray")
    if strategy not in ("pack", "spread"):
        raise InvalidArgument(f"strategy={strategy!r}: choose 'pack' or 'spread'.")
    if address is None:
        _check_counts(nodes=nodes, cpus=cpus)
    if not cpus_per_rank > 0:
        raise InvalidArgument(f"cpus_per_rank={cpus_per_rank!r}: a number above 0.")
    from distlab.engines.ray.local import LocalCluster, attach

    local = LocalCluster(nodes, cpus) if address is None else None
    try:
        began = attach(local.address if local else address)
        return RayCluster(local, began, strategy.upper(), cpus_per_rank)
    except BaseException:
        if local:
            local.close()
        raise


def _gpus_here():
    import ray

    return ray.get_gpu_ids()


def _check_counts(**counts):
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidArgument(f"{name}={count!r}: a whole number, at least 1.")


@dataclass(eq=False)
class _RayNode:
    """A node of the cluster that can run ranks.

    actor: distlab's on this node, once it is needed. facts: what it runs, if known.
    killed: by `kill_node`, which Ray itself knows later.
    """

    number: int
    id: str
    address: str
    killed: bool = False
    actor: object = None
    facts: dict | None = None

    @property
    def name(self):
        """The node's name, with its address unless that is this machine's loopback."""
        own = "" if self.address.startswith("127.") else f" ({self.address})"
        return f"node {self.number}{own}"


class _NodeLost(EngineFailed):
    """A node that died before it ran ranks."""


class RayCluster:
    """The nodes of a Ray cluster, as `on=` takes them.

    nodes: the names of the nodes that can run ranks.
    """

    def __init__(self, local, began, strategy: str, cpus_per_rank: float):
        self._local, self._began = local, began
        self._strategy, self._cpus_per_rank = strategy, cpus_per_rank
        self._nodes, self._groups = {}, []
        self._closed = False
        for node in self._alive():
            self._start_actor(node)

    def __repr__(self):
        state = "closed" if self._closed else ", ".join(self.nodes)
        return f"RayCluster: {state}"

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that can run ranks."""
        return [node.name for node in self._alive()]

    def choose_backend(
        self, backend: str, world_size: int, *, share_gpu: bool = False
    ) -> tuple[str, list[str]]:
        """Return "gloo" or "nccl" for ranks on these nodes, and notes on the choice.

        Raises: InvalidArgument if the cluster has too few CPUs or GPUs for them.
        """
        if backend not in ("auto", "gloo", "nccl"):
            raise InvalidArgument(
                f"backend={backend!r}: choose 'gloo' (CPU), 'nccl' (a GPU for every "
                "rank) or 'auto'."
            )
        if share_gpu and backend == "gloo":
            raise InvalidArgument("share_gpu=True is for backend='nccl'.")
        gpus = sum(self._totals("GPU").values())
        if backend == "auto":
            enough = gpus >= (1 if share_gpu else world_size)
            backend = "nccl" if enough else "gloo"
        self._check_room(world_size, "CPU", self._cpus_per_rank)
        if backend == "nccl":
            share = self._gpus_per_rank(world_size) if share_gpu else 1
            self._check_room(world_size, "GPU", share)
            if share < 1:
                return backend, [shared_gpus(world_size, gpus)]
        return backend, []

    def _gpus_per_rank(self, world_size):
        """Return the GPUs that Ray reserves for a rank: one, or a share of one."""
        gpus = sum(self._totals("GPU").values())
        return 1 if gpus >= world_size else 1 / math.ceil(world_size / (gpus or 1))

    def _check_room(self, world_size, kind, each):
        totals = self._totals(kind)
        room = sum(int(total / each) for total in totals.values())
        if room < world_size:
            has = ", ".join(f"{name} has {n:g}" for name, n in totals.items()) or "none"
            less = ", or cpus_per_rank below 1" * (kind == "CPU")
            raise InvalidArgument(
                f"world_size={world_size}: the cluster has room for {room} ranks, with "
                f"{each:g} {kind} each ({has}). Take fewer ranks{less}, or add a node."
            )

    def _totals(self, kind):
        """Return node name -> its CPUs or GPUs."""
        import ray

        totals = {n["NodeID"]: n["Resources"].get(kind, 0) for n in ray.nodes()}
        return {node.name: totals[node.id] for node in self._alive()}

    def _alive(self):
        """Return the live nodes that have CPUs, as far as Ray knows."""
        import ray

        self._check_open()
        every = sorted(ray.nodes(), key=lambda each: _HEAD not in each["Resources"])
        for each in every:
            known = each["NodeID"] in self._nodes
            if not known and each["Alive"] and each["Resources"].get("CPU"):
                where = each["NodeID"], each["NodeManagerAddress"]
                self._nodes[each["NodeID"]] = _RayNode(len(self._nodes), *where)
        alive = {each["NodeID"] for each in every if each["Alive"]}
        return [
            node
            for node in self._nodes.values()
            if node.id in alive and not node.killed
        ]

    def _check_open(self):
        if self._closed:
            raise EngineFailed("this cluster is closed. Open another: ray_cluster().")

    def start_ranks(
        self, world_size: int, backend: str, *, persistent: bool
    ) -> RayRanks:
        """Start ranks on the nodes; return them.

        Raises: EngineFailed if Ray has no room for them in time, or a node cannot run
        them.
        """
        start = partial(self.start_processes, range(world_size), backend)
        return RayRanks(world_size, backend, persistent=persistent, start=start)

    def start_processes(
        self,
        numbers: Sequence[int],
        backend: str,
        board: SharedTrace,
        entry: str,
        also: Sequence[str] = (),
    ) -> NodesProcesses:
        """Start processes with these numbers on the nodes; return them.

        board: gets what they note. entry, also: as of `Processes`.

        Raises: as `start_ranks` does.
        """
        how = {"world_size": len(numbers), "entry": entry, "also": list(also)}
        how |= self._surroundings()
        group, bundles = self._reserved(len(numbers), backend), {}

        def place(numbers, wait_s=math.inf):
            # Ray moves the bundles of a node that dies to others that have room.
            until = time.monotonic() + wait_s
            while True:
                self._await_room(group, until)
                try:
                    return self._open(group, list(numbers), bundles, how)
                except _NodeLost:
                    if time.monotonic() > until:
                        raise
                time.sleep(_LOOK_S)  # until Ray knows it, too

        release = partial(self._release, group)
        try:
            addresses = place(numbers, patience(_PLACED_S))
        except BaseException:
            release()
            raise
        return NodesProcesses(addresses, board, more=place, release=release)

    def _reserved(self, count, backend):
        """Return a placement group with a bundle for each of `count` ranks."""
        from ray.util.placement_group import placement_group

        self._check_open()
        bundle = {"CPU": self._cpus_per_rank}
        if backend == "nccl":
            bundle["GPU"] = self._gpus_per_rank(count)
        group = placement_group([bundle] * count, self._strategy)
        self._groups.append(group)
        return group

    def _await_room(self, group, until):
        while not group.wait(_LOOK_S):
            if group not in self._groups or time.monotonic() > until:
                raise EngineFailed(
                    f"Ray found no room for {group.bundle_count} ranks in time: the "
                    "cluster is large enough, so others hold its CPUs. `ray status` in "
                    "a terminal says who; close worlds that are not needed."
                )

    def _release(self, group):
        from ray.util.placement_group import remove_placement_group

        if group in self._groups:
            self._groups.remove(group)
            remove_placement_group(group)

    def _open(self, group, numbers, bundles, how):
        """Have the nodes of some processes listen; return their addresses.

        bundles: the number of each process -> its bundle of the placement group.
        """
        from ray.util.placement_group import placement_group_table

        places = placement_group_table(group)["bundles_to_node_id"]
        nodes = {node.id: node for node in self._alive()}
        if not set(places.values()) <= set(nodes):
            raise _NodeLost("Ray chose a node that is gone.")
        if len(numbers) == len(places):  # all: contiguous numbers on each node
            order = [*nodes]
            by_node = sorted(places, key=lambda bundle: order.index(places[bundle]))
            bundles |= zip(numbers, by_node, strict=True)
        own = defaultdict(list)
        for number in numbers:
            own[places[bundles[number]]].append(number)
        own = {nodes[each]: mine for each, mine in own.items()}
        return self._opened(own, how, self._visible_gpus(group, own, bundles))

    def _visible_gpus(self, group, own, bundles):
        """Return node -> CUDA_VISIBLE_DEVICES of its ranks, if they have GPUs.

        A placement group holds the same GPUs for its bundles as long as it lives: a
        short task in each says which. Local rank r takes the r-th.
        """
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        share = group.bundle_specs[0].get("GPU")
        if not share:
            return {node: {} for node in own}
        found, ask = {}, ray.remote(_gpus_here)
        for node, mine in own.items():
            asked = []
            for number in mine:
                where = PlacementGroupSchedulingStrategy(group, bundles[number])
                how = {"num_cpus": 0, "num_gpus": share, "scheduling_strategy": where}
                asked.append(ask.options(**how).remote())
            ids = chain.from_iterable(self._answers([node] * len(mine), asked))
            visible = ",".join(dict.fromkeys(map(str, ids)))
            found[node] = {"CUDA_VISIBLE_DEVICES": visible}
        return found

    def _opened(self, own, how, environments):
        self._check_facts([*own])
        tokens = {node: secrets.token_bytes(TOKEN_BYTES) for node in own}
        asked = [
            node.actor.open.remote(
                node.address,
                tokens[node],
                how | {"own": mine, "environment": environments[node]},
            )
            for node, mine in own.items()
        ]
        return [
            NodeAddress(node.name, node.address, port, tokens[node], mine)
            for (node, mine), port in zip(
                own.items(), self._answers(own, asked), strict=True
            )
        ]

    def _surroundings(self):
        """Return the settings that ranks inherit from here; none on another machine."""
        if not self._local:
            return {"path": [], "directory": None}
        return {"path": sys.path, "directory": os.getcwd()}

    def _check_facts(self, nodes):
        """Refuse a node whose Python, torch or distlab is not this process's.

        Raises: EngineFailed.
        """
        for node in nodes:
            if node.actor is None:
                self._start_actor(node)
        missing = [node for node in nodes if node.facts is None]
        asked = [node.actor.facts.remote() for node in missing]
        for node, facts in zip(missing, self._answers(missing, asked), strict=True):
            wrong = explain_difference(facts, facts_here())
            if wrong:
                raise EngineFailed(f"{node.name} cannot run these ranks: {wrong}")
            node.facts = facts

    def _start_actor(self, node):
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        how = {"num_cpus": 0, "scheduling_strategy": there}
        node.actor = ray.remote(actor_class()).options(**how).remote()

    def _answers(self, nodes, asked):
        """Return the answers of nodes, one each.

        Raises: EngineFailed if one does not answer.
        """
        import ray

        found = []
        for node, each in zip(nodes, asked, strict=True):
            try:
                found.append(ray.get(each, timeout=patience(_READY_S)))
            except ray.exceptions.RayError as error:
                node.actor = node.facts = None
                last = str(error).strip().splitlines()[-1]
                gone = isinstance(error, ray.exceptions.RayActorError)
                raise (_NodeLost if gone else EngineFailed)(
                    f"{node.name} did not start its process for ranks: {last}"
                ) from None
        return found

    def kill_node(self, number: int) -> None:
        """Kill a node of a cluster that was started here, as a power cut would.

        Node 0, to which this process is connected, is none of them.

        Raises: InvalidArgument for another cluster, or another number.
        """
        local = self._local_only("kill_node")
        alive = {node.number: node for node in self._alive() if node.number}
        if number not in alive:
            raise InvalidArgument(
                f"kill_node({number!r}): it can kill nodes {[*alive]}; node 0 is the "
                "cluster's head, and this process goes with it."
            )
        alive[number].killed = True
        local.kill_node(alive[number].id)

    def add_node(self, cpus: int = 4) -> None:
        """Start one more node of a cluster that was started here.

        Raises: InvalidArgument for another cluster.
        """
        self._local_only("add_node").add_node(cpus)

    def _local_only(self, what):
        if self._local is None:
            raise InvalidArgument(
                f"{what} is for a cluster that ray_cluster() started; on the machines "
                "of this one, use `ray start` and `ray stop`."
            )
        return self._local

    def close(self) -> None:
        """Give back all that is held; end the cluster if it was started here."""
        if self._closed:
            return
        import ray

        for group in list(self._groups):
            self._release(group)
        self._closed = True
        for node in self._nodes.values():
            if node.actor is not None:
                ray.kill(node.actor)
        if self._began:
            ray.shutdown()
        if self._local:
            self._local.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
