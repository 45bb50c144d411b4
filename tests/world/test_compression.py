"""Gradient compression beside its formulas, its papers' bounds, and PyTorch's hooks."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as torchs
from torch.nn.parallel import DistributedDataParallel

from distlab import InvalidArgument, RankRaised, cost, run
from distlab.train.buckets import Bucket
from distlab.train.compression import (
    FP8,
    MX,
    QSGD,
    Cast,
    Compressed,
    PowerSGD,
    Quantized,
    RandomK,
    Sign,
    SparseTernary,
    TopK,
    TwoWay,
    quantized_gather,
)
from distlab.train.compression.compressor import pack, packed_bytes, unpack
from distlab.train.data_parallel import OverlappedDataParallel
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block, DigitReader
from distlab.train.shards import all_gather_parts

MAKERS = {
    "float16": Cast,
    "bfloat16": lambda: Cast(torch.bfloat16),
    "8 bits": Quantized,
    "3 bits": lambda: Quantized(3, block=50),
    "QSGD": lambda: QSGD(block=32),
    "sign": Sign,
    "top-k": lambda: TopK(0.01),
    "ternary": lambda: SparseTernary(0.01),
    "random-k": lambda: RandomK(0.3),
    "rank 1": PowerSGD,
    "rank 3": lambda: PowerSGD(3),
    "sign, two-way": lambda: TwoWay(Sign()),
    "8 bits, two-way": lambda: TwoWay(Quantized(8, block=100)),
    "e4m3": FP8,
    "e5m2 in blocks": lambda: FP8(torch.float8_e5m2, block=50),
    "MX": MX,
    "MX, two-way": lambda: TwoWay(MX()),
}
FEEDS_BACK = [name for name in MAKERS if name != "vote"]
SHAPES = [(12, 7), (5,), (3, 4, 9), (1,)]


SIZES = [1, 2, 3, 4]


@pytest.fixture
def world(worlds):
    return worlds[4]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model_of(shapes, seed):
    layer = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)
    for number, parameter in enumerate(layer):
        parameter.grad = drawn(*parameter.shape, seed=100 * seed + number)
    return list(layer)


def averaged(comm, name, shapes, steps, feedback):
    """Return the bucket's gradients after each step, and what was not sent."""
    hook = Compressed(MAKERS[name](), error_feedback=feedback)
    parameters = model_of(shapes, 0)
    seen = []
    for step in range(steps):
        bucket = Bucket(parameters)
        for number, each in enumerate(bucket.gradients()):
            each.copy_(drawn(*each.shape, seed=1000 * step + 100 * comm.rank + number))
        seen.append(hook(comm, bucket).wait().clone())
    return seen, torch.cat([hook.error_of(p) for p in parameters])


def gradient(rank, step, shapes):
    numbers = enumerate(shapes)
    drawn_ = [drawn(*s, seed=1000 * step + 100 * rank + n).view(-1) for n, s in numbers]
    return torch.cat(drawn_)


# ---- bytes ---------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 8, 11, 14, 24])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 1001])
def test_packed_numbers_take_no_bit_too_many_and_come_back(bits, count):
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 2**bits, count))
    packed = pack(values, bits)
    assert len(packed) == packed_bytes(count, bits) == -(-count * bits // 8)
    assert unpack(packed, bits, count).tolist() == values.tolist()


def test_bits_are_packed_as_numpy_packs_them():
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 2, 77))
    theirs = np.packbits(values.numpy().astype(bool), bitorder="little")
    assert pack(values, 1).tolist() == theirs.tolist()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("ranks", SIZES)
def test_bytes_on_the_wire_are_those_of_the_formula(worlds, name, ranks):
    report = worlds[ranks].run(averaged, name, SHAPES, 1, False)
    sent = tuple(report.trace.bytes_sent(rank) for rank in range(ranks))
    assert sent == MAKERS[name]().cost(ranks, SHAPES).sent_bytes


@pytest.mark.parametrize(
    "compressor, count, published",
    [
        (TopK(0.001), 25_557_032, 25_557 * 8),  # ResNet-50
        (Sign(), 10_000, 1250 + 4),
        (Quantized(8, block=2048), 4096, 4096 + 8),
        (Quantized(4, block=2048), 4096, 2048 + 8),
        (Cast(), 1000, 2000),
        (SparseTernary(0.01), 8192, 4 + 82 * 14 // 8 + 1),
        (TopK(0.29), 100, 29 * 8),  # 0.29 * 100 is 28.999... in binary
        (TopK(0.001), 10, 8),
        (FP8(), 1000, 1000 + 4),
        (FP8(block=128), 1000, 1000 + 4 * 8),
        (MX(), 1000, 1000 + 32),
    ],
)
def test_the_bytes_of_a_code_are_those_counted_by_hand(compressor, count, published):
    assert compressor.nbytes(count) == published


def resnet_18():
    """Return the shapes of ResNet-18's parameters, as it is built for CIFAR-10."""
    shapes, wide = [(64, 3, 3, 3), (64,), (64,)], 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            shapes += [(width, wide, 3, 3), (width, width, 3, 3), *[(width,)] * 4]
            if wide != width:
                shapes += [(width, wide, 1, 1), (width,), (width,)]
            wide = width
    return [*shapes, (10, 512), (10,)]


@pytest.mark.parametrize("bits", [4, 8])
def test_gathered_codes_send_as_much_as_a_bfloat16_ring_at_32_ranks_a_bit(bits):
    n, shape = 32 // bits, [(1_000_000,)]
    dense = cost.ring_all_reduce(n, 2_000_000, itemsize=2).busiest_bytes
    gathered = Quantized(bits).cost(n, shape).busiest_bytes
    two_way = TwoWay(Quantized(bits)).cost(n, shape).busiest_bytes
    assert gathered / dense == pytest.approx(1, rel=0.01)
    assert dense / two_way == pytest.approx(16 / bits, rel=0.01)


@pytest.mark.parametrize("rank, published", [(1, 243), (2, 136), (4, 72)])
def test_power_sgd_sends_of_resnet_18_what_its_paper_says(rank, published):
    elements = sum(torch.Size(shape).numel() for shape in resnet_18())
    sent = PowerSGD(rank).cost(2, resnet_18()).sent_bytes[0]
    assert round(4 * elements / sent) == published


# ---- what comes out ------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_all_ranks_get_the_same_bits(world, name):
    results = world.run(averaged, name, SHAPES, 3, name != "vote").results
    for seen, _ in results[1:]:
        assert all(map(torch.equal, seen, results[0][0]))


@pytest.mark.parametrize("name", FEEDS_BACK)
def test_with_error_feedback_nothing_is_lost(world, name):
    """What came out, and what all still hold, add up to the mean of all gradients."""
    results = world.run(averaged, name, SHAPES, 6, True).results
    if "two-way" in name:  # of which the means' errors are held as well
        return
    came = sum(results[0][0])
    held = sum(error for _, error in results) / 4
    whole = sum(gradient(r, s, SHAPES) for r in range(4) for s in range(6)) / 4
    assert torch.allclose(came + held, whole, atol=0.02 if "float" in name else 1e-4)


def test_two_way_errors_and_means_add_up_to_the_gradients(world):
    def summed(comm):
        compressor = TwoWay(Sign())
        hook, parameters = Compressed(compressor), model_of([(4, 10)], 0)
        came = 0
        for step in range(5):
            bucket = Bucket(parameters)
            bucket.buffer().copy_(gradient(comm.rank, step, [(4, 10)]))
            came = came + hook(comm, bucket).wait()
        (error,) = compressor._errors.values()
        return came, hook.error_of(parameters[0]), error

    results = world.run(summed).results
    held = sum(error for _, error, _ in results) / 4
    held += torch.cat([error for *_, error in results])
    whole = sum(gradient(r, s, [(4, 10)]) for r in range(4) for s in range(5)) / 4
    assert torch.allclose(results[0][0] + held, whole, atol=1e-5)


@pytest.mark.parametrize("name", FEEDS_BACK)
def test_a_gradient_of_zeros_stays_zero(world, name):
    def zeros(comm):
        hook, parameters = Compressed(MAKERS[name]()), model_of(SHAPES, 0)
        bucket = Bucket(parameters)
        bucket.buffer().zero_()
        return hook(comm, bucket).wait()

    assert not world.run(zeros).results[0].any()


# ---- what papers promise -------------------------------------------------------------


def alone(compressor, flat):
    return compressor.decompress(compressor.compress(flat), flat)


@pytest.mark.parametrize("density", [0.001, 0.1, 0.5, 1.0])
def test_top_k_leaves_the_smallest_and_contracts_by_k_over_d(density):
    for seed in range(20):
        flat = drawn(777, seed=seed)
        compressor = TopK(density)
        lost = flat - alone(compressor, flat)
        kept = compressor.kept(777)
        smallest = flat.abs().sort().values[: 777 - kept]
        assert lost.norm() ** 2 == pytest.approx(float((smallest**2).sum()), rel=1e-4)
        assert lost.norm() ** 2 <= (1 - kept / 777) * flat.norm() ** 2 + 1e-6


def test_sign_contracts_by_how_even_the_magnitudes_are():
    for seed in range(20):
        flat = drawn(777, seed=seed) ** 3
        lost = ((flat - alone(Sign(), flat)) ** 2).sum() / (flat**2).sum()
        promised = 1 - flat.abs().sum() ** 2 / (777 * (flat**2).sum())
        assert float(lost) == pytest.approx(float(promised), rel=1e-4)


@pytest.mark.parametrize(
    "make", [lambda: QSGD(4), lambda: QSGD(2), lambda: Quantized(4, stochastic=True)]
)
def test_stochastic_rounding_is_right_on_average(make):
    flat, compressor = drawn(300), make()
    compressor.generator = torch.Generator().manual_seed(1)
    codes = torch.stack([alone(compressor, flat) for _ in range(1000)])
    noise = ((codes - flat) ** 2).sum(1).mean()
    assert ((codes.mean(0) - flat) ** 2).sum() < 2 * noise / 1000
    if isinstance(compressor, QSGD):
        levels = compressor.most
        bound = min(300 / levels**2, 300**0.5 / levels) * flat.norm() ** 2
        assert noise <= bound


def test_nearest_rounding_errs_by_half_a_level_at_most():
    flat = drawn(1000)
    for bits in (2, 4, 8):
        lost = (flat - alone(Quantized(bits, block=1000), flat)).abs().max()
        assert lost <= flat.abs().max() / (2 ** (bits - 1) - 1) / 2 * 1.001


def test_random_k_is_unbiased_only_if_asked(worlds):
    def mean_of(comm, unbiased):
        hook = RandomK(0.1, unbiased=unbiased)
        flat = drawn(50)
        return sum(hook.average(comm, flat, [])[0] for _ in range(3000)) / 3000

    for unbiased, share in ((True, 1.0), (False, 0.1)):
        found = worlds[1].run(mean_of, unbiased).results[0]
        assert torch.allclose(found, share * drawn(50), atol=0.35 if unbiased else 0.05)


# ---- 8-bit floats --------------------------------------------------------------------

FLOAT8 = {torch.float8_e4m3fn: (4, 3, 448), torch.float8_e5m2: (5, 2, 57344)}


def numbers_of(dtype):
    """Return what each byte from 0 to the largest number's stands for, by the bits."""
    exponent_bits, fraction_bits, most = FLOAT8[dtype]
    bias, found = 2 ** (exponent_bits - 1) - 1, []
    for byte in range(128):
        exponent, fraction = divmod(byte, 2**fraction_bits)
        one = fraction / 2**fraction_bits + (exponent > 0)
        found.append(one * 2.0 ** (max(exponent, 1) - bias))
    return found[: found.index(most) + 1]


def naive_mx(elements, dtype):
    """Return the bytes of the specification's conversion, element by element."""
    numbers, exponents, code = numbers_of(dtype), [], []
    highest = 2.0 ** np.floor(np.log2(numbers[-1]))
    for begin in range(0, len(elements), 32):
        block = elements[begin : begin + 32]
        largest, k = max(map(abs, block)), -127
        while k < 127 and 2.0 ** (k + 1) * highest <= largest:
            k += 1
        exponents.append(k + 127)
        for x in block:
            size = abs(x) / 2.0**k
            off = [(abs(size - y), byte % 2, byte) for byte, y in enumerate(numbers)]
            code.append(min(off)[2] + 128 * np.signbit(x))
    return exponents + code


@pytest.mark.parametrize("dtype", FLOAT8, ids=["e4m3", "e5m2"])
def test_mx_codes_are_those_of_a_naive_twin(dtype):
    sizes = 2.0 ** torch.linspace(-140, 120, 20).round().repeat_interleave(7)
    wide = drawn(140) * sizes  # blocks with large and small elements
    edges = torch.tensor([0.0, -0.0, 1.0, 1.75, 1.9, -1.99, 2.0, 1e-42, 3e38])
    for flat in (wide, drawn(64, seed=1), edges, edges[:5], torch.zeros(33)):
        code = MX(dtype).compress(flat)
        assert code.tolist() == naive_mx(flat.tolist(), dtype)
        powers = code[: -(-len(flat) // 32)].view(torch.float8_e8m0fnu).float()
        assert torch.equal(MX(dtype).scales(code[: len(powers)]), powers)


@pytest.mark.parametrize("block", [None, 40])
@pytest.mark.parametrize("dtype", FLOAT8, ids=["e4m3", "e5m2"])
def test_8_bit_floats_are_torchs_casts_of_scaled_elements(dtype, block):
    flat = drawn(4, 40)
    groups = flat if block else flat.view(1, -1)
    scales = groups.abs().amax(1, keepdim=True) / torch.finfo(dtype).max
    expected = (groups / scales).to(dtype).float() * scales
    found = alone(FP8(dtype, block=block), flat.view(-1))
    assert torch.equal(found, expected.view(-1))
    assert found.abs().max() == pytest.approx(float(flat.abs().max()), rel=1e-6)


@pytest.mark.parametrize(
    "make", [FP8, MX, Quantized, lambda: TopK(1.0), lambda: TwoWay(FP8())]
)
def test_codes_of_bfloat16_gradients_are_added_in_float32(world, make):
    def mean_of(comm):
        mine = torch.full((4,), 1.0 if comm.rank else 256.0, dtype=torch.bfloat16)
        return make().average(comm, mine, [])[0]

    for mean in world.run(mean_of).results:  # in bfloat16, 256 + 1 + 1 + 1 is 256
        assert torch.equal(mean, torch.full((4,), 259 / 4, dtype=torch.bfloat16))


def test_errors_of_bfloat16_gradients_add_up_beyond_its_precision(worlds):
    def unsent(comm):
        parameter = nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))
        hook = Compressed(TopK(0.5))
        for _ in range(400):
            bucket = Bucket([parameter])
            bucket.buffer().copy_(torch.tensor([600.0, 1.0]))
            hook(comm, bucket)
        return hook.error_of(parameter).tolist()

    assert worlds[1].run(unsent).results == [[0, 400]]  # in bfloat16, 256 + 1 is 256


# ---- PyTorch -------------------------------------------------------------------------


def beside_torch(comm, rank, steps):
    """Return gradients under PyTorch's PowerSGD hook and under ours, step by step."""
    found = []
    for ours in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 30))
        model = DistributedDataParallel(model.append(nn.Linear(30, 7)))
        if ours:
            model.register_comm_hook(comm, Compressed(PowerSGD(rank, seed=5), warmup=2))
        else:
            state = torchs.PowerSGDState(
                None, rank, 2, min_compression_rate=2, random_seed=5
            )
            model.register_comm_hook(state, torchs.powerSGD_hook)
        seen = []
        for step in range(steps):
            model.zero_grad()
            (model(drawn(9, 40, seed=10 * step + comm.rank)) ** 2).mean().backward()
            seen.append(torch.cat([p.grad.view(-1) for p in model.parameters()]))
        found.append(seen)
    return found


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_power_sgd_approximates_as_pytorchs_hook_does(world, rank):
    theirs, ours = world.run(beside_torch, rank, 8).results[0]
    for one, other in zip(theirs, ours, strict=True):
        assert torch.allclose(one, other, atol=1e-4 * float(one.abs().max()))


def trained(comm, name, on_ddp):
    torch.manual_seed(0)
    model = DigitReader(16)
    hook = Compressed(MAKERS[name](), error_feedback=name != "vote")
    if on_ddp:
        wrapped = DistributedDataParallel(model)
        wrapped.register_comm_hook(comm, hook)
    else:
        wrapped = OverlappedDataParallel(comm, model, hook=hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step in range(4):
        optimizer.zero_grad(set_to_none=False)
        (wrapped(drawn(5, 64, seed=10 * step + comm.rank)) ** 2).mean().backward()
        if not on_ddp:
            wrapped.average_gradients()
        optimizer.step()
    errors = [] if name == "vote" else [hook.error_of(p) for p in model.parameters()]
    return torch.cat([p.detach().view(-1) for p in model.parameters()]), errors


@pytest.mark.parametrize("name", ["float16", "sign", "top-k", "ternary"])
def test_one_hook_trains_alike_on_ours_and_on_ddp(world, name):
    """DDP makes its buckets anew after the first step; the errors go along."""
    mine, my_errors = world.run(trained, name, False).results[0]
    theirs, their_errors = world.run(trained, name, True).results[0]
    assert torch.allclose(mine, theirs, atol=1e-6)
    assert torch.allclose(torch.cat(my_errors), torch.cat(their_errors), atol=1e-5)
    assert name == "float16" or any(error.any() for error in my_errors)


def test_a_parameter_that_a_new_bucket_leaves_behind_keeps_its_error(world):
    def remade(comm):
        """Return 3 gradients less what was not sent, and what came on all ranks."""
        hook, came = Compressed(TopK(0.3)), torch.zeros(26)
        parameters = model_of([(5,), (6,), (7,), (8,)], comm.rank)
        a, b, c, d = parameters
        for groups in ([[a, b], [c, d]], [[a], [b, c, d]], [[a], [b, c, d]]):
            buckets = [Bucket(group) for group in groups]
            for bucket in buckets:
                bucket.take_in()
            came += torch.cat([hook(comm, bucket).wait() for bucket in buckets])
        error = torch.cat([hook.error_of(p) for p in parameters])
        return 3 * torch.cat([p.grad for p in parameters]) - error, came

    results = world.run(remade).results
    sent = sum(sent for sent, _ in results)
    assert torch.allclose(4 * results[0][1], sent, atol=1e-4)


# ---- the edges of floating-point numbers ---------------------------------------------


@pytest.mark.parametrize("size", [1e-42, 1e-38, 1e-30, 1e19, 1e30])
@pytest.mark.parametrize("make", [Quantized, QSGD, lambda: QSGD(8, block=4), FP8, MX])
def test_very_small_and_very_large_elements_stay_in_proportion(make, size):
    flat, code = torch.tensor([1.0, -1.0, 0.5, 0.0]) * size, make()
    code.generator = torch.Generator().manual_seed(0)
    found = code.decompress(code.compress(flat), flat)
    assert found[3] == 0 and bool(found.isfinite().all())
    assert float((found - flat).abs().max()) <= size * 1.001


def test_an_empty_tensor_comes_back_empty():
    for make in MAKERS.values():
        if not isinstance(make(), TwoWay | PowerSGD | RandomK):
            empty = torch.empty(0)
            assert make().decompress(make().compress(empty), empty).shape == (0,)


# ---- sharded parameters --------------------------------------------------------------


def sharded(comm):
    """Return losses of a sharded model and of a whole one with what was gathered."""
    torch.manual_seed(0)
    gather, gpt = quantized_gather(Quantized(8, block=64)), GPT(width=16, length=8)
    whole = copy.deepcopy(gpt)
    model = FullySharded(comm, gpt, Block, gather=gather)
    text = torch.arange(3 * 9).view(3, 9)
    loss = gpt.loss(text)
    errors, values = [], {}
    for group in model.groups:
        flat, exact = torch.zeros_like(group.full), torch.zeros_like(group.full)
        for each, fill in ((flat, gather), (exact, all_gather_parts)):
            group.own(each).copy_(group.shard.detach())
            fill(comm, each)
        errors.append(float((flat - exact).abs().max() / exact.abs().max()))
        values |= dict(zip(group.names, group.views(flat), strict=True))
    whole.load_state_dict(values)
    return loss.item(), whole.loss(text).item(), errors


def test_a_sharded_model_computes_with_the_parameters_that_were_sent(world):
    results = world.run(sharded).results
    for loss, expected, errors in results:
        assert loss == pytest.approx(expected, rel=1e-6) == results[0][0]
        assert 0 < max(errors) <= 0.5 / 127 * 1.001


@pytest.mark.parametrize("make", [Quantized, FP8, MX])  # MX has 4 blocks of a byte
def test_a_quantized_gather_sends_codes(world, make):
    def gathered(comm):
        quantized_gather(make())(comm, torch.ones(4 * 100))

    trace = world.run(gathered).trace
    assert [trace.bytes_sent(rank) for rank in range(4)] == [3 * (100 + 4)] * 4


# ---- what goes wrong -----------------------------------------------------------------


@pytest.mark.parametrize("density", [0, -0.1, 1.01, float("nan")])
def test_a_density_that_is_none_is_refused(density):
    with pytest.raises(InvalidArgument, match="above 0 and up to 1"):
        TopK(density)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Quantized(1), "2 to 8 bits"),
        (lambda: Quantized(8, block=0), "block of 1"),
        (lambda: PowerSGD(0), "rank is 1 or more"),
        (lambda: Cast(torch.int8), "float16 or bfloat16"),
        (lambda: FP8(torch.float16), "e4m3fn or torch.float8_e5m2, not torch.float16"),
        (lambda: FP8(block=0), "block has 1 element"),
        (lambda: Compressed(QSGD(4)), "QSGD as it is may lose more"),
        (lambda: Compressed(TwoWay(QSGD(2))), "grow without end"),
        (lambda: Compressed(RandomK(0.1, unbiased=True)), "RandomK as it is"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize("value, what", [(float("nan"), "NaN"), (float("inf"), "infi")])
@pytest.mark.parametrize("on_ddp", [True, False])
def test_a_gradient_that_is_not_finite_is_named(value, what, on_ddp):
    def poisoned(comm):
        model = DigitReader(16)
        hook = Compressed(TopK(0.1), module=model)
        if on_ddp:
            wrapped = DistributedDataParallel(model)
            wrapped.register_comm_hook(comm, hook)
        else:
            hook = Compressed(TopK(0.1))
            wrapped = OverlappedDataParallel(comm, model, hook=hook)
        if comm.rank == 1:
            model.layers[2].bias.register_hook(lambda g: torch.full_like(g, value))
        wrapped(torch.ones(2, 64)).sum().backward()
        if not on_ddp:
            wrapped.average_gradients()

    with pytest.raises(RankRaised, match=rf"rank 1: .*layers\.2\.bias .*{what}"):
        run(poisoned, 2)


def test_other_gradients_are_told_apart():
    def integers(comm):
        class Whole:
            def buffer(self):
                return torch.ones(3, dtype=torch.int64)

            def parameters(self):
                return [torch.ones(3)]

        Compressed(TopK(0.1))(comm, Whole())

    with pytest.raises(RankRaised, match=r"floating-point .* torch\.int64"):
        run(integers, 2)


def test_float16_that_overflows_says_so_on_every_rank():
    def large(comm):
        bucket = Bucket([nn.Parameter(torch.zeros(3))])
        bucket.buffer().fill_(1e5)
        Compressed(Cast())(comm, bucket)

    with pytest.raises(RankRaised, match="65504"):
        run(large, 2)


def test_an_empty_gradient_is_left_alone(world):
    def empty(comm):
        bucket = Bucket([nn.Parameter(torch.zeros(0, 4))])
        return Compressed(TopK(0.5))(comm, bucket).wait().shape

    assert world.run(empty).results == [torch.Size([0])] * 4
