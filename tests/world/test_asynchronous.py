"""Parameter servers, local steps, gossip's graphs: beside one process and torch."""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.utils import parameters_to_vector

from distlab import Kill, RankDied, RankRaised, cost, run, run_elastic
from distlab.errors import InvalidArgument
from distlab.links import LINKS, Link
from distlab.simulated import Uniform
from distlab.train.asynchronous import (
    Asynchronous,
    ElasticAveraging,
    LocalSGD,
    StreamingLocalSGD,
    Synchronous,
    Worker,
    complete_graph,
    exponential_graph,
    gradients_of,
    nesterov,
    replay,
    ring_graph,
    serve,
    shard_of,
    spectral_gap,
    torus_graph,
)
from distlab.train.elastic import ElasticState

SIZES = [4, 5]
FAST = Uniform(LINKS["NVLink 4"])
ELEMENTS, RATE = 7, 0.05


def sgd(parameters):
    return torch.optim.SGD(parameters, RATE)


def start():
    return torch.linspace(-1, 1, ELEMENTS, dtype=torch.float64)


def gradient(values, worker, count):
    """Return worker's count-th gradient: of a bowl with a center of its own."""
    return values - torch.full_like(values, math.sin(3 * worker + count))


def taught(comm, make, updates, servers=1, seconds=None):
    """Train; return a server's values and ages, or how often a worker pulled."""
    if comm.rank < servers:
        rule, ages = make(shard_of(start(), comm.rank, servers)), []
        push = rule.push

        def noted(worker, version, values):
            ages.append((worker, rule.version - version))
            return push(worker, version, values)

        rule.push = noted
        serve(comm, rule, updates, servers=servers)
        return rule.values, ages
    worker, count = Worker(comm, start(), servers=servers), 0
    while (values := worker.pull()) is not None:
        with comm.work("gradient", seconds=(seconds or {}).get(comm.rank, 0.0)):
            mine = gradient(values, comm.rank, count)
        worker.push(mine)
        count += 1
    return count


# ---- parameter servers ---------------------------------------------------------------


@pytest.mark.parametrize("servers", [1, 2])
def test_a_synchronous_server_trains_as_one_process_does(worlds, servers):
    workers = range(servers, 5)
    report = worlds[5].run(taught, lambda v: Synchronous(v, sgd), 6, servers)
    whole = start()
    for count in range(6):
        whole -= RATE * sum(gradient(whole, w, count) for w in workers) / len(workers)
    got = torch.cat([values for values, _ in report.results[:servers]])
    assert torch.allclose(got, whole, atol=1e-12)


def test_a_bound_of_0_is_synchronous(worlds):
    one = worlds[5].run(taught, lambda v: Asynchronous(v, sgd, bound=0), 24)
    other = worlds[5].run(taught, lambda v: Synchronous(v, four_times), 6)
    assert torch.allclose(one.results[0][0], other.results[0][0], atol=1e-12)


def four_times(parameters):
    return torch.optim.SGD(parameters, 4 * RATE)


@pytest.mark.parametrize("servers", [1, 3])
def test_bytes_are_those_of_the_formula(worlds, servers):
    """Four answers, three gradients, and a last message to all but the first server."""
    report = worlds[5].run(taught, lambda v: Synchronous(v, sgd), 3, servers)
    once = cost.parameter_server(5, ELEMENTS * 8, itemsize=8, servers=servers)
    once = once.sent_bytes
    shards = [shard_of(start(), k, servers).nbytes + 8 for k in range(servers)]
    expected = [4 * n for n in once[:servers]]
    expected += [3 * n + sum(shards[1:]) for n in once[servers:]]
    assert [report.trace.bytes_sent(rank) for rank in range(5)] == expected


def test_ages_in_the_trace_are_those_that_the_server_saw(worlds):
    seconds = {1: 0.004, 2: 0.001, 3: 0.001, 4: 0.001}
    report = worlds[5].run(taught, lambda v: Asynchronous(v, sgd), 60, 1, seconds)
    arrived = gradients_of(report.trace)
    ages = [(each.worker, each.age) for each in arrived]
    assert ages[:60] == report.results[0][1] and len({age for _, age in ages}) > 2
    assert set(Counter(each.worker for each in arrived)) == {1, 2, 3, 4}


def test_a_replay_has_the_parameters_of_the_run(worlds):
    report = worlds[5].run(taught, lambda v: Asynchronous(v, sgd, by_age=True), 50)
    rule, counts = Asynchronous(start(), sgd, by_age=True), Counter()

    def compute(values, worker):
        counts[worker] += 1
        return gradient(values, worker, counts[worker] - 1)

    replay(rule, gradients_of(report.trace)[:50], compute)
    assert torch.equal(rule.values, report.results[0][0])


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_no_worker_is_further_ahead_than_the_bound(bound):
    rule, clocks, waits = Asynchronous(start(), sgd, bound=bound), Counter(), set()
    rule.begin([1, 2, 3])
    draw = np.random.default_rng(bound)
    for _ in range(300):
        worker = draw.choice([w for w in (1, 2, 3) if w not in waits])
        clocks[worker] += 1
        waits |= {worker}
        waits -= set(rule.push(worker, rule.version, start()))
        slowest = min(clocks[w] for w in (1, 2, 3))
        assert waits == {w for w in waits if clocks[w] - slowest > bound}
        assert max(clocks.values()) - slowest <= bound + 1


def test_who_waits_for_a_worker_that_leaves_goes_on():
    rule = Asynchronous(start(), sgd, bound=0)
    rule.begin([1, 2, 3])
    assert rule.push(1, 0, start()) == [] == rule.push(2, 0, start())
    assert rule.leave(3) == [1, 2]
    rule = Synchronous(start(), sgd)
    rule.begin([1, 2])
    assert rule.push(1, 0, start()) == []
    assert rule.leave(2) == [1] and rule.version == 1


def test_backup_workers_are_not_waited_for():
    slow = {1: 1.0, 2: 1.0, 3: 1.0, 4: 10.0}
    for backup, took in ((0, 50), (1, 5)):
        make = lambda v: Synchronous(v, sgd, backup=backup)  # noqa: B023, E731
        report = run(taught, 5, args=(make, 5, 1, slow), fabric=FAST)
        marks = report.trace.of(0, "mark")
        assert marks[-1].label == "version 5" and round(marks[-1].end) == took


def test_the_learning_rate_is_divided_by_the_age():
    rule = Asynchronous(start(), sgd, by_age=True)
    rule.begin([1, 2])
    ones = torch.ones(ELEMENTS, dtype=torch.float64)
    rule.push(1, 0, ones)
    rule.push(2, 0, ones)
    assert torch.allclose(rule.values, start() - RATE * (1 + 1 / 2))


def test_samples_per_second_beside_waiting_for_a_slow_worker():
    """Of 4 workers one is 4 times slower: 3 1/4 gradients in the time of one."""
    slow = {1: 0.4, 2: 0.1, 3: 0.1, 4: 0.1}
    ends = []
    for make, updates in (
        (lambda v: Asynchronous(v, sgd), 130),
        (lambda v: Synchronous(v, sgd), 10),
    ):
        report = run(taught, 5, args=(make, updates, 1, slow), fabric=FAST)
        ends.append(report.trace.of(0, "mark")[-1].end)
    assert ends == [pytest.approx(4.0, rel=0.02), pytest.approx(4.0, rel=1e-3)]


def test_elastic_averaging_moves_both_ends():
    def elastic(comm):
        if comm.rank == 0:
            rule = ElasticAveraging(start(), 0.3)
            serve(comm, rule, 3)
            return rule.values
        worker, mine = Worker(comm, start()), start() + 1
        while (center := worker.pull()) is not None:
            mine += 0.3 * (center - mine)
            worker.push(mine)
        return mine

    center, mine = start(), start() + 1
    for moves in (0, 0.3, 0.3):
        center, mine = center + moves * (mine - center), mine + 0.3 * (center - mine)
    center = center + 0.3 * (mine - center)
    got_center, got = run(elastic, 2).results
    assert torch.allclose(got_center, center) and torch.allclose(got, mine)


# ---- faults and mistakes -------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_that_dies_is_named_and_none_hangs(victim):
    args = lambda v: Synchronous(v, sgd), 50
    with pytest.raises(RankDied) as died:
        run(taught, 4, args=args, faults=Kill(victim, 20))
    assert died.value.rank == victim


@pytest.mark.parametrize("victim", [0, 2])
def test_an_elastic_world_goes_on_without_server_or_worker(victim):
    report = run_elastic(survives, 4, args=(40,), faults=[Kill(victim, 30)], restarts=0)
    assert [len(world.processes) for world in report.worlds] == [4, 3], report
    done, values = next(each for each in report.results if isinstance(each, tuple))
    assert torch.isfinite(values).all()
    # At most the one update that only the server had is done again.
    assert done[-1] == 40 and len(done) in (40, 41)


def survives(comm, kept, updates):
    """Go on from the newest parameters: the server's, or a worker's if it is gone."""
    if "state" not in kept:
        kept["state"] = ElasticState(values=start(), version=0)
    state = kept["state"]
    state.sync(comm)
    if comm.rank == 0:
        rule = Asynchronous(state["values"], sgd, bound=1)
        rule.version = state["version"]
        done = list(range(1, rule.version + 1))

        def after(version):
            done.append(version)
            state["version"] = version
            state.commit()

        serve(comm, rule, updates, after=after)
        return done, rule.values
    worker, count = Worker(comm, start()), 0
    while (values := worker.pull()) is not None:
        state.update(values=values, version=worker.version)
        state.commit()
        state.commits = worker.version
        worker.push(gradient(values, comm.rank, count))
        count += 1
    return count


def test_a_gradient_that_is_not_finite_is_named_and_not_applied():
    def poisons(comm):
        if comm.rank == 0:
            rule = Asynchronous(start(), sgd)
            try:
                serve(comm, rule, 50)
            finally:
                assert rule.values.isfinite().all()
        worker = Worker(comm, start())
        while (values := worker.pull()) is not None:
            if comm.rank == 3 and worker.version > 5:
                values[2] = math.nan
            worker.push(values)

    with pytest.raises(RankRaised, match=r"rank 3 sent values .* element 2") as raised:
        run(poisons, 4)
    assert raised.value.rank == 0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Asynchronous(start(), sgd, bound=-1), "bound"),
        (lambda: Asynchronous(start().int(), sgd), "floating-point"),
        (lambda: Synchronous(start(), sgd, backup=1.5), "backup"),
        (lambda: Synchronous(start(), sgd, backup=2).begin([1, 2]), "none of 2"),
        (lambda: ElasticAveraging(start(), 0), "alpha"),
        (lambda: cost.parameter_server(2, 8, servers=2), "one server"),
        (lambda: spectral_gap(np.eye(3) * 2), "sums to 1"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(InvalidArgument, match=words):
        call()


def test_a_world_of_servers_only_is_refused():
    with pytest.raises(RankRaised, match="at least one server and one worker"):
        run(taught, 4, args=(lambda v: Asynchronous(v, sgd), 5, 4))


# ---- local steps ---------------------------------------------------------------------


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def locally(comm, every, outer, steps, theirs=False):
    """Train with an average every few steps: ours, or torch's."""
    module = model()
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    ours = None if theirs else LocalSGD(comm, module, every=every, outer=outer)
    torchs = PeriodicModelAverager(every, warmup_steps=every - 1) if theirs else None
    draw = torch.Generator().manual_seed(comm.rank)
    for _ in range(steps):
        x = torch.randn(8, 3, generator=draw, dtype=torch.float64)
        optimizer.zero_grad()
        (module(x) - x[:, :2].sin()).square().mean().backward()
        optimizer.step()
        if theirs:
            torchs.average_parameters(module.parameters())
        else:
            ours.after_step()
    return parameters_to_vector(module.parameters()).detach()


@pytest.mark.parametrize("every", [2, 3])
def test_local_steps_end_where_torchs_averager_does(worlds, every):
    ours = worlds[4].run(locally, every, None, 6).results
    theirs = worlds[4].run(locally, every, None, 6, True).results
    assert all(torch.equal(each, ours[0]) for each in ours)
    assert torch.allclose(ours[0], theirs[0], atol=1e-12)


def test_diloco_steps_as_its_algorithm_says(worlds):
    """The outer step is written out here: Nesterov's momentum, in one process."""
    got = worlds[4].run(locally, 2, nesterov, 6).results[0]
    center = parameters_to_vector(model().parameters()).detach()
    draws = [torch.Generator().manual_seed(rank) for rank in range(4)]
    modules = [model() for _ in range(4)]
    optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in modules]
    velocity = torch.zeros_like(center)
    for step in range(1, 7):
        for module, optimizer, draw in zip(modules, optimizers, draws, strict=True):
            x = torch.randn(8, 3, generator=draw, dtype=torch.float64)
            optimizer.zero_grad()
            (module(x) - x[:, :2].sin()).square().mean().backward()
            optimizer.step()
        if step % 2 == 0:
            ends = [parameters_to_vector(m.parameters()).detach() for m in modules]
            moved = center - sum(ends) / 4
            velocity = 0.9 * velocity + moved
            center = center - 0.7 * (moved + 0.9 * velocity)
            for module in modules:
                nn.utils.vector_to_parameters(center.clone(), module.parameters())
    assert torch.allclose(got, center, atol=1e-12)


def test_local_steps_cost_an_all_reduce_every_so_many(worlds):
    report = worlds[4].run(locally, 3, None, 9)
    first = worlds[4].run(locally, 3, None, 0)
    nbytes = parameters_to_vector(model().parameters()).nbytes
    once = cost.ring_all_reduce(4, nbytes, itemsize=8)
    for rank, sent in enumerate(once.sent_bytes):
        assert report.trace.bytes_sent(rank) - first.trace.bytes_sent(rank) == 3 * sent


# ---- streaming -----------------------------------------------------------------------


def streaming(comm, steps, every=4, seconds=0.0, size=4, **how):
    """Train a vector towards a point of each rank's own; return it after each step."""
    module, mine, found = nn.Linear(size, 1, bias=False).double(), comm.rank + 1.0, []
    nn.init.zeros_(module.weight)
    local = StreamingLocalSGD(comm, module, every=every, outer=sgd1, **how)
    for step in range(steps):
        with comm.work("step", seconds=seconds), torch.no_grad():
            module.weight += 0.1 * (mine + step - module.weight)
        local.after_step()
        found.append(module.weight.detach()[0].clone())
    return torch.stack(found)


def sgd1(parameters):
    return torch.optim.SGD(parameters, 0.7, momentum=0.9, nesterov=True)


@pytest.mark.parametrize("delay, mix", [(0, 0.0), (1, 0.5), (3, 0.25)])
def test_fragments_are_averaged_in_turn_and_applied_late(worlds, delay, mix):
    """Streaming DiLoCo, element by element, in one process: two fragments of two."""
    job = partial(streaming, fragments=2, delay=delay, mix=mix)
    got = worlds[4].run(job, 12).results
    x, center, velocity, moving = np.zeros((4, 4)), np.zeros(4), np.zeros(4), []
    for step in range(1, 13):
        x += 0.1 * (np.arange(1, 5)[:, None] + step - 1 - x)
        for turn, elements in ((0, [0, 1]), (2, [2, 3])):
            if step % 4 == turn:
                average = (center - x).mean(0)[elements]
                moving.append((step + delay, elements, average))
        while moving and moving[0][0] == step:
            _, at, average = moving.pop(0)
            velocity[at] = 0.9 * velocity[at] + average
            center[at] -= 0.7 * (average + 0.9 * velocity[at])
            x[:, at] = mix * x[:, at] + (1 - mix) * center[at]
        for rank in range(4):
            assert np.allclose(got[rank][step - 1], x[rank])


def test_one_fragment_without_delay_is_diloco(worlds):
    def both(comm):
        torch.manual_seed(0)
        one, other = (nn.Linear(3, 2).double() for _ in range(2))
        other.load_state_dict(one.state_dict())
        pairs = [
            (one, LocalSGD(comm, one, every=2, outer=nesterov)),
            (other, StreamingLocalSGD(comm, other, every=2, fragments=1)),
        ]
        for _ in range(6):
            for module, local in pairs:
                with torch.no_grad():
                    module.weight += comm.rank + 1
                local.after_step()
        assert (
            pairs[0][1].extra_bytes == 2 * parameters_to_vector(one.parameters()).nbytes
        )
        kept = [pairs[0][1].center, *pairs[1][1].centers]
        assert all(center.grad is None for center in kept)  # freed after each average
        return torch.equal(one.weight, other.weight)

    assert all(worlds[4].run(both).results)


def test_a_delay_hides_the_average_behind_steps():
    """A fragment of 100 KB at 1 MB/s takes 0.15 s in a ring of 4, a step 0.1 s."""
    slow, took = Uniform(Link(latency_s=0.0, bytes_per_s=1e6)), {}
    for delay in (0, 1, 2):
        how = {"fragments": 2, "delay": delay, "seconds": 0.1, "size": 25_000}
        took[delay] = run(
            partial(streaming, **how), 4, args=(8,), fabric=slow
        ).elapsed_s
    # The fourth average starts after the last step, and nothing is left to hide it.
    assert took[0] - took[2] == pytest.approx(3 * 0.15)
    assert took[1] - took[2] == pytest.approx(3 * (0.15 - 0.1))


# ---- gossip --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 8, 16, 64])
def test_spectral_gaps_are_those_of_the_closed_forms(n):
    """Ying et al. (2021), proposition 1 and table 1."""
    assert spectral_gap(complete_graph(n)) == pytest.approx(1)
    assert spectral_gap(exponential_graph(n)) == pytest.approx(2 / (1 + math.log2(n)))
    ring = 1 - abs(1 + 2 * math.cos(2 * math.pi / n)) / 3
    assert spectral_gap(ring_graph(n)) == pytest.approx(ring)
    side = math.isqrt(n)
    if side * side == n and side > 2:
        torus = (2 - 2 * math.cos(2 * math.pi / side)) / 5
        assert spectral_gap(torus_graph(side, side)) == pytest.approx(torus)


def test_mixing_matrices_keep_the_mean():
    tori = torus_graph(2, 3), torus_graph(3, 4)
    for matrix in (*tori, ring_graph(5), exponential_graph(5), complete_graph(5)):
        assert np.allclose(matrix.sum(0), 1) and np.allclose(matrix.sum(1), 1)
        assert (matrix >= 0).all() and (np.diag(matrix) > 0).all()
