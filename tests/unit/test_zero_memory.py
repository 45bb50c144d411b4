"""What ZeRO's stages hold, beside the tables that were published."""

import pytest

from distlab import InvalidArgument, cost

GB = 1e9
# Rajbhandari et al. (2020), table 1: GB of model states per GPU, stages 1, 2 and 3.
TABLE_1 = {
    7.5e9: {
        1: (120, 120, 120), 4: (52.5, 41.3, 30), 16: (35.6, 21.6, 7.5),
        64: (31.4, 16.6, 1.88), 256: (30.4, 15.4, 0.47), 1024: (30.1, 15.1, 0.12),
    },
    128e9: {
        1: (2048, 2048, 2048), 4: (896, 704, 512), 16: (608, 368, 128),
        64: (536, 284, 32), 256: (518, 263, 8), 1024: (513, 257, 2),
    },
    1e12: {
        1: (16000, 16000, 16000), 4: (7000, 5500, 4000), 16: (4750, 2875, 1000),
        64: (4187, 2218, 250), 256: (4046, 2054, 62.5), 1024: (4011, 2013, 15.6),
    },
}  # fmt: skip


def last_digit(number):
    """Return what one unit of the last digit printed is worth."""
    return 10.0 ** -len(f"{number}".partition(".")[2])


@pytest.mark.parametrize("parameters", TABLE_1)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_memory_is_that_of_the_papers_table_1(parameters, stage):
    for ranks, published in TABLE_1[parameters].items():
        number = published[stage - 1]
        ours = cost.zero_memory(parameters, ranks, stage).total_bytes / GB
        # The paper cuts some of its numbers off and rounds others.
        assert abs(ours - number) < last_digit(number), (ranks, number, ours)


def test_memory_is_that_of_the_papers_figure_1():
    totals = [cost.zero_memory(7.5e9, 64, stage).total_bytes / GB for stage in range(4)]
    assert totals == pytest.approx([120, 31.4, 16.6, 1.88], rel=3e-3)


def test_each_stage_shares_out_one_kind_more():
    kinds = [cost.zero_memory(100, 4, stage) for stage in range(4)]
    assert [k.state_bytes for k in kinds] == [1200, 300, 300, 300]
    assert [k.gradient_bytes for k in kinds] == [200, 200, 50, 50]
    assert [k.parameter_bytes for k in kinds] == [200, 200, 200, 50]


def test_a_step_sends_twice_or_three_times_the_parameters_less_a_share():
    sent = [cost.zero_traffic_bytes(400, 4, stage) for stage in range(4)]
    assert sent == [600, 600, 600, 900]
    assert cost.zero_traffic_bytes(400, 1, 3) == 0


@pytest.mark.parametrize("ranks, stage, words", [(4, 4, "0 to 3"), (0, 1, "one rank")])
def test_what_makes_no_sense_is_refused(ranks, stage, words):
    for ask in (cost.zero_memory, cost.zero_traffic_bytes):
        with pytest.raises(InvalidArgument, match=words):
            ask(100, ranks, stage)
