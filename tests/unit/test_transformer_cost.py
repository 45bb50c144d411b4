"""Parameters, FLOPs, MFU and memory of models, against what was published of them."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from distlab import InvalidArgument, cost
from distlab.cost import TransformerShape
from distlab.train.models import GPT

GPT_2 = {"biases": True, "positions": 1024}
LLAMA = {"gated": True, "tied": False}
GQA = LLAMA | {"key_value_heads": 8}
MIXTURE = {"mlp_width": 14336, "experts": 8, "experts_per_token": 2}
GPT_3 = TransformerShape(96, 12288, 96, 50257, biases=True, positions=2048)


@pytest.mark.parametrize(
    ("sizes", "options", "parameters"),
    [  # as counted by the checkpoints on huggingface.co
        ((12, 768, 12, 50257), GPT_2, 124_439_808),
        ((48, 1600, 25, 50257), GPT_2, 1_557_611_200),
        ((32, 4096, 32, 32000), LLAMA | {"mlp_width": 11008}, 6_738_415_616),
        ((32, 4096, 32, 128_256), GQA | {"mlp_width": 14336}, 8_030_261_248),
        ((80, 8192, 64, 128_256), GQA | {"mlp_width": 28672}, 70_553_706_496),
        ((126, 16384, 128, 128_256), GQA | {"mlp_width": 53248}, 405_853_388_800),
        ((32, 4096, 32, 32000), GQA | MIXTURE, 46_702_792_704),
    ],
)
def test_parameters_are_those_of_published_models(sizes, options, parameters):
    assert TransformerShape(*sizes, **options).parameters == parameters


def test_a_token_uses_two_of_mixtrals_experts():
    mixtral = TransformerShape(32, 4096, 32, 32000, **GQA, **MIXTURE)
    assert mixtral.active_parameters == pytest.approx(12.9e9, rel=2e-3)
    per_token = 6 * mixtral.active_parameters + 12 * 32 * 4096 * 2048
    embedding = 6 * 32000 * 4096  # looked up, not multiplied
    assert mixtral.training_flops(2048) == pytest.approx(
        per_token - embedding, rel=1e-4
    )


def test_mfu_is_that_of_palms_table_3_and_appendix_b():
    """Chowdhery et al. (2022): 46.2 % for PaLM, 30.2 % for Megatron-Turing NLG."""
    options = {"head_width": 256, "key_value_heads": 1, "gated": True}
    palm = TransformerShape(118, 18432, 48, 256_000, **options)
    assert palm.parameters == pytest.approx(540.35e9, rel=1e-4)
    found = cost.mfu(palm.training_flops(2048), 238.3e3, 6144, 275e12)
    assert found == pytest.approx(0.462, abs=5e-4)
    mt_nlg = TransformerShape(105, 20480, 128, 51200, biases=True, positions=2048)
    found = cost.mfu(mt_nlg.training_flops(2048), 65.43e3, 2240, 312e12)
    assert found == pytest.approx(0.302, abs=5e-4)


def test_parameters_and_flops_are_those_that_torch_counts():
    gpt = GPT(width=32, layers=3, heads=4, length=16)
    shape = TransformerShape(3, 32, 4, 256, biases=True, positions=16, tied=False)
    biases = 3 * 4 * 32  # which this attention has not
    assert shape.parameters - biases == sum(p.numel() for p in gpt.parameters())
    text = torch.randint(256, (2, 17))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as count:
        gpt.loss(text).backward()  # fused attention on a CPU is not counted
    assert count.get_total_flops() == 2 * 16 * shape.training_flops(16)


def test_stages_have_all_parameters_and_a_tied_embedding_twice():
    for shape, copies in ((GPT_3, 1), (TransformerShape(8, 64, 4, 100, tied=False), 0)):
        for stages in (1, 2, 4, 8):
            found = sum(shape.stage_parameters(stages, k) for k in range(stages))
            twice = copies * (stages > 1) * shape.vocabulary * shape.width
            assert found == pytest.approx(shape.parameters + twice)


def test_a_first_stage_holds_all_layers_and_masks_as_korthikanti_et_al_say():
    """Section 4.3: sbhL/t (34 + 5as/h + p/L + (p = 1) 4/L (1 + v/h))."""
    how = {"tp": 8, "sequence": True}
    whole = 2048 * 12288 / 8
    for stages in (1, 8):
        ends = (stages == 1) * 4 * (1 + 50257 / 12288)
        found = cost.stage_activation_bytes(GPT_3, 2048, 1, stages=stages, **how)
        assert found == pytest.approx(whole * (96 * (34 + 80) + stages + ends))
    last = cost.stage_activation_bytes(GPT_3, 2048, 1, stages=8, stage=7, **how)
    assert last == pytest.approx(whole * (12 * (34 + 80) + 4 * (1 + 50257 / 12288)))
    alone = cost.stage_activation_bytes(GPT_3, 2048, 1, tp=8)  # the ends are not cut
    of_layers = 96 * cost.activation_bytes(2048, 1, 12288, 96, tp=8)
    ends = 8 * whole * 5 + 4 * 2048 * 50257 / 8
    assert alone == pytest.approx(of_layers + ends)


def test_zero_offload_leaves_two_bytes_of_sixteen_on_the_gpu():
    gpu, host = cost.offload_memory(10e9, 1, 2)  # Ren et al. (2021): 8 times less
    assert (gpu.total_bytes, host.total_bytes) == (20e9, 140e9)
    gpu, host = cost.offload_memory(10e9, 4, 3, offloaded=("state",))
    assert (gpu.total_bytes, host.total_bytes) == (10e9, 30e9)
    for wrong in (("moments",), "state"):
        with pytest.raises(
            InvalidArgument, match="some of parameters, gradients, state"
        ):
            cost.offload_memory(10e9, 1, 2, offloaded=wrong)


@pytest.mark.parametrize(
    ("sizes", "options", "words"),
    [
        ((0, 64, 4, 9), {}, "layers is a whole number from 1 up, and got 0"),
        ((2, "64", 4, 9), {}, "width is a whole number from 1 up, and got '64'"),
        ((2, 64, 0, 9), {}, "heads is a whole number"),
        ((2, 64, 4, 9), {"positions": -1}, "positions is a whole number from 0 up"),
        ((2, 64, 5, 9), {}, "width is a multiple of heads=5, or give head_width"),
        (
            (2, 64, 4, 9),
            {"key_value_heads": 3},
            "key_value_heads is a divisor of heads=4, and got 3",
        ),
        ((2, 64, 4, 9), {"experts_per_token": 2}, "is experts=1 at most, and got 2"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(sizes, options, words):
    with pytest.raises(InvalidArgument, match=words):
        TransformerShape(*sizes, **options)


def test_stages_and_rates_that_cannot_be_are_refused():
    with pytest.raises(
        InvalidArgument, match="stage is a whole number from 0 to 3, and got 4"
    ):
        GPT_3.stage_parameters(4, 4)
    with pytest.raises(InvalidArgument, match="length is a number from 1 up"):
        GPT_3.training_flops(0)
    with pytest.raises(InvalidArgument, match="tokens_per_s is a number above 0"):
        cost.mfu(1e12, 0, 8, 989e12)
