"""Parameters, FLOPs, MFU and stage memory of a transformer, from its shape.

    llama = TransformerShape(126, 16384, 128, 128_256, key_value_heads=8,
                             mlp_width=53_248, gated=True, tied=False)
    llama.parameters                       405,853,388,800
    llama.training_flops(length=8192)      of a token, forward and backward

FLOPs are those of matrix products, two for each multiplication; attention is counted
for all pairs of tokens, as the papers do, also where a causal mask skips half of them.
A stage's states are `zero_memory(shape.stage_parameters(...) / tp, dp, stage)`.

Source: Chowdhery et al., "PaLM: scaling language modeling with Pathways" (2022),
    appendix B; Korthikanti et al. (2022), section 4.3 and appendix A; DeepSeek-AI,
    "DeepSeek-V2" (2024), section 2.1, multi-head latent attention.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

from distlab.cost.transformer_layer import check_recompute
from distlab.errors import InvalidArgument

__all__ = ["LatentAttention", "TransformerShape", "mfu", "stage_activation_bytes"]

_BIASED = ("query", "key", "value", "attention", "mlp", "norm")


class LatentAttention(NamedTuple):
    """Widths of multi-head latent attention (MLA), from a config's names.

    query_rank, key_value_rank: of the two low-rank products; query_rank 0 for none.
    plain, rotary: of a head's query and key, without and with rotary positions; the
    rotary part of the key is shared by all heads. value: of a head's value.
    """

    query_rank: int
    key_value_rank: int
    plain: int
    rotary: int
    value: int


@dataclass(frozen=True)
class TransformerShape:
    """A decoder's shape: layers, width, attention heads, and tokens in its vocabulary.

    key_value_heads: fewer than heads in grouped-query attention.
    head_width: None for width / heads. latent: widths of MLA, in place of both.
    mlp_width: None for 4 widths. gated: three matrices in the MLP (SwiGLU), not two.
    parallel: attention and MLP have the same input, and one norm.
    layer_norms: None for 2, or 1 if parallel; Gemma 2 has 4. norms_of_heads: of queries
        and keys, one for all heads (Qwen3); "wide": over all heads together (OLMo 2).
    biases: True for all linear layers and norms (LayerNorm), or names of query, key,
        value, attention (its output), mlp, router, norm.
    tied: the output layer is the token embedding. positions: learned ones.
    experts: routed MLPs in a layer, of which a token uses experts_per_token.
    expert_width: of a routed expert; None for mlp_width. shared_width: of all shared
        experts together. dense_layers: layers with one MLP of mlp_width in their place.
    window: tokens that a query attends to; None for all. windowed_layers: those that
        have it; None for all.
    dropout: its masks are kept for backward.
    other_parameters: those that no size above gives, such as a norm of embeddings.

    Raises: InvalidArgument for a size below 1, or heads or experts that do not fit.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    _: KW_ONLY
    key_value_heads: int | None = None
    head_width: int | None = None
    latent: LatentAttention | None = None
    mlp_width: int | None = None
    gated: bool = False
    parallel: bool = False
    layer_norms: int | None = None
    norms_of_heads: bool | str = False
    biases: bool | tuple[str, ...] = False
    tied: bool = True
    positions: int = 0
    experts: int = 1
    experts_per_token: int = 1
    expert_width: int | None = None
    shared_width: int = 0
    dense_layers: int = 0
    window: int | None = None
    windowed_layers: int | None = None
    dropout: bool = True
    other_parameters: int = 0

    def __post_init__(self):
        given = {name: size for name, size in vars(self).items() if size is not None}
        for name, size in given.items():
            least = 0 if name in _MAY_BE_0 else 1
            plain = type(size) in (bool, tuple, str, LatentAttention)
            wrong = not plain and (type(size) is not int or size < least)
            wrong |= type(size) is str and name != "norms_of_heads"
            _refuse(wrong, name, f"a whole number from {least} up", size)
        each, left = divmod(self.width, self.heads)
        divisible = f"a multiple of heads={self.heads}, or give head_width"
        _refuse(left and not self.head_width, "width", divisible, self.width)
        usual = {"key_value_heads": self.heads, "mlp_width": 4 * self.width}
        usual |= {"head_width": each, "layer_norms": 2 - self.parallel}
        for name, size in (usual | given).items():
            object.__setattr__(self, name, size)
        object.__setattr__(self, "expert_width", self.expert_width or self.mlp_width)
        self._check_counts()

    def _check_counts(self):
        kv, many = self.key_value_heads, self.experts_per_token
        divisor = f"a divisor of heads={self.heads}"
        _refuse(self.heads % kv, "key_value_heads", divisor, kv)
        most = f"experts={self.experts} at most"
        _refuse(many > self.experts, "experts_per_token", most, many)
        dense, all_of_them = self.dense_layers, f"layers={self.layers} at most"
        _refuse(dense > self.layers, "dense_layers", all_of_them, dense)
        named = self.biases if isinstance(self.biases, tuple) else ()
        known = f"True, False or some of {(*_BIASED, 'router')}"
        _refuse(set(named) - {*_BIASED, "router"}, "biases", known, self.biases)

    @property
    def layer_parameters(self) -> float:
        """The parameters of a layer, with all its experts; the mean if they differ."""
        return _whole(self._layers(self.experts) / self.layers)

    @property
    def expert_parameters(self) -> int:
        """The parameters of all layers' routed experts; 0 without routing."""
        return self.routed_layers * self.experts * self._mlp(self.expert_width)

    @property
    def routed_layers(self) -> int:
        """The number of layers that have routed experts."""
        return (self.layers - self.dense_layers) * (self.experts > 1)

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._with_ends(self._layers(self.experts))

    @property
    def active_parameters(self) -> int:
        """The parameters that one token uses; fewer than all with several experts."""
        return self._with_ends(self._layers(self.experts_per_token))

    @property
    def multiplied_parameters(self) -> int:
        """The active parameters that are factors in products.

        Without embeddings that are looked up, norms and biases; some publish this
        number as the active one (gpt-oss).
        """
        return self._products + self.vocabulary * self.width

    def stage_parameters(self, stages: int, stage: int) -> float:
        """Return the parameters of a pipeline stage, if layers are spread evenly.

        A tied embedding is on the first stage and the last.
        """
        _check_stage(stages, stage)
        found = self.layers / stages * self.layer_parameters
        if stage == 0:
            found += self._embeddings
        if stage == stages - 1:
            found += self._norm
            if stages > 1 or not self.tied:
                found += self.vocabulary * self.width
        return found

    def layer_flops(self, length: int) -> float:
        """Return the FLOPs of a layer's forward for one token of `length`.

        The mean, if layers differ.
        """
        products = 2 * self._products / self.layers
        return _whole(products + self.attention_flops(length))

    def attention_flops(self, length: int) -> float:
        """Return those of them that are between tokens: scores, and sums of values."""
        _refuse(not length >= 1, "length", "a number from 1 up", length)
        some = 0 if self.window is None else self.windowed_layers or self.layers
        seen = length + some / self.layers * (min(length, self.window or 0) - length)
        return _whole(2 * seen * self.heads * sum(self.query_and_value_widths))

    @property
    def logits_flops(self) -> int:
        """The FLOPs of the output layer's forward for one token."""
        return 2 * self.width * self.vocabulary

    def training_flops(self, length: int, *, causal: bool = False) -> float:
        """Return the FLOPs of a token, forward and backward, without recomputation.

        6 for each active parameter in a product, and 12 L h s of attention; half of
        that if `causal`: only pairs that a causal mask leaves, as some count.
        """
        found = 3 * (self.layers * self.layer_flops(length) + self.logits_flops)
        less = 1.5 * self.layers * self.attention_flops(length) if causal else 0
        return found - _whole(less)

    def hardware_flops(self, length: int, recompute: str = "full") -> float:
        """Return the FLOPs of a token with those that are computed again.

        "full": the forward of each layer, as in Megatron's 96 B s l h^2 (1 + s/6h +
        V/16lh). "selective": attention, which Korthikanti et al. count once more in
        forward and backward, 72 B l s h^2 (1 + s/3h + v/12hl); computed again is the
        forward alone, a third of it.

        Source: Narayanan et al. (2021), equation 3; Korthikanti et al., equation 8.
        """
        check_recompute(recompute)
        again = {
            "none": 0,
            "selective": 3 * self.attention_flops(length),
            "full": self.layer_flops(length),
        }
        return self.training_flops(length) + self.layers * again[recompute]

    def layer_activation_bytes(
        self,
        length: int,
        batch: int,
        *,
        tp: int = 1,
        sequence: bool = False,
        recompute: str = "none",
    ) -> float:
        """Return the bytes that a rank keeps of one layer, in 16 bit.

        `activation_bytes` of this shape, with its own widths of heads and MLP: inputs
        of norms and of the linear layers, queries, keys, values, hidden columns, scores
        and masks of dropout. Of routed experts, copies of the input and the output for
        each that a token uses. A mean, if layers differ.

        Raises: InvalidArgument.
        """
        check_recompute(recompute)
        places, whole = length * batch, tp if sequence else 1
        if recompute == "full":
            return places * 2 * self.width / whole
        scores = 0
        if recompute == "none":
            scores = (2 + 3 * self.dropout) * self.heads * length
        copies, cut = self._kept
        return places * (copies / whole + (cut + scores) / tp)

    @cached_property
    def _kept(self):
        """Bytes of a token in a layer: those that only `sequence` cuts, and the rest.

        Copies are inputs of norms and column-parallel layers, and masks of dropout.
        """
        h, (query, value) = self.width, self.query_and_value_widths
        copies = 2 * h * (self.layer_norms + 2 - self.parallel) + 2 * h * self.dropout
        cut = 2 * (self.heads + self.key_value_heads) * (query + value)
        if self.latent:
            ranks = self.latent.query_rank + self.latent.key_value_rank
            copies += 2 * (ranks + self.latent.rotary)
            cut = 2 * self.heads * (2 * query + 2 * value)
        columns = (2 + self.gated) * 2
        routed = self.routed_layers / self.layers
        hidden = (1 - routed) * self.mlp_width + routed * self.shared_width
        many = routed * self.experts_per_token
        cut += columns * (hidden + many * self.expert_width)
        return copies + many * 4 * h, cut

    @property
    def query_and_value_widths(self) -> tuple[int, int]:
        """The widths of a head's query and of its value."""
        if self.latent:
            return self.latent.plain + self.latent.rotary, self.latent.value
        return self.head_width, self.head_width

    @property
    def key_and_value_width(self) -> int:
        """The numbers that a token's key and value have, in all heads of a layer."""
        if self.latent:
            return self.latent.key_value_rank + self.latent.rotary
        return 2 * self.key_value_heads * self.head_width

    def _biased(self, *names):
        biases = _BIASED if self.biases is True else self.biases or ()
        return sum(name in biases for name in names)

    @property
    def _norm(self):
        return self.width * (1 + self._biased("norm"))

    @property
    def _embeddings(self):
        return (self.vocabulary + self.positions) * self.width + self.other_parameters

    @cached_property
    def _attention(self):
        """The parameters of a layer's attention that are factors in products."""
        h, (query, value) = self.width, self.query_and_value_widths
        if not self.latent:
            return 2 * h * (self.heads + self.key_value_heads) * self.head_width
        rank, kv_rank = self.latent.query_rank, self.latent.key_value_rank
        wide = self.heads * query
        queries = h * rank + rank * wide if rank else h * wide
        keys = h * (kv_rank + self.latent.rotary)
        both = kv_rank * self.heads * (self.latent.plain + value)
        return queries + keys + both + self.heads * value * h

    @cached_property
    def _other(self):
        """The parameters of attention and norms that are no factors in products."""
        if self.latent:
            found = self.latent.query_rank + self.latent.key_value_rank
        else:
            heads, kv = self.heads * self.head_width, self.key_value_heads
            keys = kv * self.head_width
            found = self._biased("query") * heads + self._biased("key") * keys
            found += self._biased("value") * keys
            normed = 2 * self.head_width
            if self.norms_of_heads == "wide":
                normed = heads + keys
            found += bool(self.norms_of_heads) * normed
        found += self._biased("attention") * self.width
        return found + self.layer_norms * self._norm

    def _mlp(self, width):
        """Return the parameters of an MLP of `width` hidden columns."""
        into = 1 + self.gated
        biases = self._biased("mlp") * (into * width + self.width)
        return (into + 1) * self.width * width + biases

    def _layers(self, experts):
        """Return the parameters of all layers, with `experts` routed ones in each."""
        routed = self.routed_layers
        found = self.layers * (self._attention + self._other)
        found += (self.layers - routed) * self._mlp(self.mlp_width)
        router = self.experts * (self.width + self._biased("router"))
        shared = self._mlp(self.shared_width) if self.shared_width else 0
        each = experts * self._mlp(self.expert_width) + shared + router
        return found + routed * each

    @cached_property
    def _products(self):
        """The parameters of all layers that a token meets as factors in products."""
        routed, matrices = self.routed_layers, (2 + self.gated) * self.width
        hidden = self.experts_per_token * self.expert_width + self.shared_width
        found = self.layers * self._attention
        found += (self.layers - routed) * matrices * self.mlp_width
        return found + routed * (matrices * hidden + self.experts * self.width)

    def _with_ends(self, layers):
        output = (not self.tied) * self.vocabulary * self.width
        return layers + self._embeddings + self._norm + output


_MAY_BE_0 = ("positions", "shared_width", "dense_layers", "other_parameters")


def _whole(number):
    """Return a whole number as an int."""
    return int(number) if number == int(number) else number


def mfu(
    training_flops: float, tokens_per_s: float, devices: int, peak_flops: float
) -> float:
    """Return the model FLOPs utilization, a fraction of the peak.

    training_flops: of a token; what is computed twice counts once. tokens_per_s: of all
        devices together. peak_flops: of one device, per second.

    Raises: InvalidArgument.
    """
    for name, number in dict(locals()).items():
        _refuse(not number > 0, name, "a number above 0", number)
    return training_flops * tokens_per_s / (devices * peak_flops)


def stage_activation_bytes(
    shape: TransformerShape,
    length: int,
    batch: int,
    *,
    stages: int = 1,
    stage: int = 0,
    tp: int = 1,
    **options,
) -> float:
    """Return the bytes that a rank keeps for a stage of 1F1B at its fullest, in 16 bit.

    It holds p - stage microbatches of `batch` sequences, each with its layers'
    `layer_activation_bytes` and, on the first stage, the mask of the embedding's
    dropout. On the last, one microbatch has the inputs of the final norm and the output
    layer, 4 sbh, which only sequence parallelism cuts, and 4 sbv / t of float32 logits.

    options: `sequence` and `recompute` of `layer_activation_bytes`.

    Raises: InvalidArgument.
    Source: Korthikanti et al. (2022), section 4.3.
    """
    _check_stage(stages, stage)
    layer = shape.layer_activation_bytes(length, batch, tp=tp, **options)
    each, tokens = shape.layers / stages * layer, length * batch
    width = shape.width / (tp if options.get("sequence") else 1)
    each += (stage == 0) * shape.dropout * tokens * width
    ends = (stage == stages - 1) * 4 * tokens * (width + shape.vocabulary / tp)
    return (stages - stage) * each + ends


def _check_stage(stages, stage):
    _refuse(not stages >= 1, "stages", "a number from 1 up", stages)
    wrong = type(stage) is not int or not 0 <= stage < stages
    _refuse(wrong, "stage", f"a whole number from 0 to {stages - 1}", stage)


def _refuse(wrong, name, wanted, got):
    if wrong:
        raise InvalidArgument(f"{name} is {wanted}, and got {got!r}.")
