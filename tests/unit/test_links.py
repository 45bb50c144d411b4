"""The links that one can buy, against the arithmetic of their data sheets."""

import pytest

from distlab import InvalidArgument, cost
from distlab.links import LINKS
from distlab.units import GB, MB

RATES = {  # bytes per second in one direction, from the standards' own numbers
    "NVLink 2": 300e9 / 2,
    "NVLink 3": 600e9 / 2,
    "NVLink 4": 900e9 / 2,
    "NVLink 5": 1800e9 / 2,
    "PCIe 4": 16e9 * 16 * 128 / 130 / 8,
    "PCIe 5": 32e9 * 16 * 128 / 130 / 8,
    "InfiniBand HDR": 200e9 / 8,
    "InfiniBand NDR": 400e9 / 8,
    "EFA": 100e9 / 8,
    "Ethernet 1G TCP": 1e9 / 8,
    **{
        f"Ethernet {gigabits}G {kind}": gigabits * 1e9 / 8
        for gigabits in (10, 25, 100, 400)
        for kind in ("TCP", "RDMA")
    },
}


def test_rates_are_those_of_the_standards_in_one_direction():
    assert {name: link.bytes_per_s for name, link in LINKS.items()} == (
        pytest.approx(RATES)
    )


def test_every_link_says_where_both_of_its_numbers_are_from():
    for name, link in LINKS.items():
        assert link.source.startswith("rate: ") and "; latency: " in link.source, name


def test_kernels_cost_more_latency_than_wires():
    for gigabits in (10, 25, 100, 400):
        tcp, rdma = (LINKS[f"Ethernet {gigabits}G {kind}"] for kind in ("TCP", "RDMA"))
        assert tcp.latency_s == pytest.approx(10 * rdma.latency_s)
        assert tcp.bytes_per_s == rdma.bytes_per_s


def test_a_gradient_of_400_mb_takes_what_the_wire_allows():
    assert LINKS["Ethernet 10G TCP"].seconds(400 * MB) == pytest.approx(0.32002)
    assert LINKS["InfiniBand NDR"].seconds(50 * GB) == pytest.approx(1.000014)


def test_latencies_of_nccl_are_those_of_the_protocol_that_has_the_full_rate():
    simple = {"NVLink": 3.4e-6, "PCIe": 5.7e-6, "InfiniBand": 14e-6}
    for name, link in LINKS.items():
        kind = name.split()[0]
        assert ("Simple" in link.source) == (kind in simple), name
        assert link.latency_s == simple.get(kind, link.latency_s), name


def test_nccls_own_latencies_come_out_as_its_model_says():
    # worked out by hand from the constants of src/graph/tuning.cc, 8 GPUs on a node, µs
    rings = {1: 15.0, 2: 6.6 + 28 * 1.0 + 2 * 2.7, 1024: 6.6 + 14336 * 1.0 + 2046 * 2.7}
    trees = {1: 15.2, 2: 25.2, 1024: 115.2}
    for nodes in rings:
        ring, tree = (
            fn(nodes) for fn in (cost.nccl_ring_latency_s, cost.nccl_tree_latency_s)
        )
        assert ring * 1e6 == pytest.approx(rings[nodes])
        assert tree * 1e6 == pytest.approx(trees[nodes])
    # one GPU to a node: all 2 * 3 steps leave it, at a tree's latency
    assert cost.nccl_ring_latency_s(4, 1) * 1e6 == pytest.approx(6.6 + 6 * 5.0)
    for nodes, gpus in ((0, 8), (4, 0), (1.5, 8)):
        with pytest.raises(InvalidArgument, match="from 1 up"):
            cost.nccl_ring_latency_s(nodes, gpus)
