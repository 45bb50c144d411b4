"""Parameters, FLOPs, MFU and stage memory of a transformer, from its shape.

    llama = TransformerShape(126, 16384, 128, 128_256, key_value_heads=8,
                             mlp_width=53_248, gated=True, tied=False)
    llama.parameters                       405,853,388,800
    llama.training_flops(length=8192)      of a token, forward and backward

FLOPs are those of matrix products, two for each multiplication; attention is counted
for all pairs of tokens, as the papers do, also where a causal mask skips half of them.
A stage's states are `zero_memory(shape.stage_parameters(...) / tp, dp, stage)`.

Source: Chowdhery et al., "PaLM: scaling language modeling with Pathways" (2022),
    appendix B; Korthikanti et al. (2022), section 4.3.
"""

from dataclasses import KW_ONLY, dataclass

from distlab.cost.transformer_layer import activation_bytes
from distlab.errors import InvalidArgument

__all__ = ["TransformerShape", "mfu", "stage_activation_bytes"]


@dataclass(frozen=True)
class TransformerShape:
    """A decoder's shape: layers, width, attention heads, and tokens in its vocabulary.

    key_value_heads: fewer than heads in grouped-query attention.
    head_width: None for width / heads. mlp_width: None for 4 widths.
    gated: three matrices in the MLP (SwiGLU) in place of two.
    biases: linear layers have them, and norms (LayerNorm) besides their scale.
    tied: the output layer is the token embedding. positions: learned ones.
    experts: MLPs in a layer, of which a token uses experts_per_token.

    Raises: InvalidArgument for a size below 1, or heads or experts that do not fit.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    _: KW_ONLY
    key_value_heads: int | None = None
    head_width: int | None = None
    mlp_width: int | None = None
    gated: bool = False
    biases: bool = False
    tied: bool = True
    positions: int = 0
    experts: int = 1
    experts_per_token: int = 1

    def __post_init__(self):
        given = {name: size for name, size in vars(self).items() if size is not None}
        for name, size in given.items():
            least = 0 if name == "positions" else 1
            wrong = type(size) is not bool and (type(size) is not int or size < least)
            _refuse(wrong, name, f"a whole number from {least} up", size)
        each, left = divmod(self.width, self.heads)
        divisible = f"a multiple of heads={self.heads}, or give head_width"
        _refuse(left and not self.head_width, "width", divisible, self.width)
        usual = {"key_value_heads": self.heads, "mlp_width": 4 * self.width}
        for name, size in (usual | {"head_width": each} | given).items():
            object.__setattr__(self, name, size)
        kv, many = self.key_value_heads, self.experts_per_token
        divisor = f"a divisor of heads={self.heads}"
        _refuse(self.heads % kv, "key_value_heads", divisor, kv)
        most = f"experts={self.experts} at most"
        _refuse(many > self.experts, "experts_per_token", most, many)

    @property
    def layer_parameters(self) -> int:
        """The parameters of a layer, with all its experts."""
        return self._layer(self.experts)

    @property
    def expert_parameters(self) -> int:
        """The parameters of all layers' routed experts."""
        if self.experts == 1:
            return 0
        one = self._layer(2) - self._layer(1)
        return self.layers * self.experts * one

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._whole(self.layer_parameters)

    @property
    def active_parameters(self) -> int:
        """The parameters that one token uses; fewer than all with several experts."""
        return self._whole(self._layer(self.experts_per_token))

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

    def layer_flops(self, length: int) -> int:
        """Return the FLOPs of a layer's forward for one token of `length`."""
        _refuse(not length >= 1, "length", "a number from 1 up", length)
        products = self._matrices(self.experts_per_token)
        return 2 * products + 4 * length * self.heads * self.head_width

    @property
    def logits_flops(self) -> int:
        """The FLOPs of the output layer's forward for one token."""
        return 2 * self.width * self.vocabulary

    def training_flops(self, length: int) -> int:
        """Return the FLOPs of a token, forward and backward, without recomputation.

        6 for each active parameter in a product, and 12 L h s of attention.
        """
        return 3 * (self.layers * self.layer_flops(length) + self.logits_flops)

    @property
    def _norm(self):
        return self.width * (1 + self.biases)

    @property
    def _embeddings(self):
        return (self.vocabulary + self.positions) * self.width

    def _matrices(self, experts):
        """Return the parameters of a layer that are factors in products."""
        attention = 2 * (self.heads + self.key_value_heads) * self.head_width
        mlp = experts * (3 if self.gated else 2) * self.mlp_width
        router = self.experts * (self.experts > 1)
        return self.width * (attention + mlp + router)

    def _layer(self, experts):
        wide = (self.heads + 2 * self.key_value_heads) * self.head_width + self.width
        mlp = (2 if self.gated else 1) * self.mlp_width + self.width
        biases = self.biases * (wide + experts * mlp)
        return self._matrices(experts) + biases + 2 * self._norm

    def _whole(self, layer):
        output = (not self.tied) * self.vocabulary * self.width
        return self.layers * layer + self._embeddings + self._norm + output


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

    It holds p - stage microbatches of `batch` sequences: of its layers, as in
    `activation_bytes`, and on the first stage the mask of the embedding's dropout. On
    the last, one microbatch has the inputs of the final norm and the output layer,
    4 sbh, which only sequence parallelism cuts, and 4 sbv / t of float32 logits.

    options: `sequence` and `recompute` of `activation_bytes`.

    Raises: InvalidArgument.
    Source: Korthikanti et al. (2022), section 4.3.
    """
    _check_stage(stages, stage)
    layer = activation_bytes(length, batch, shape.width, shape.heads, tp=tp, **options)
    each, tokens = shape.layers / stages * layer, length * batch
    width = shape.width / (tp if options.get("sequence") else 1)
    each += (stage == 0) * tokens * width
    ends = (stage == stages - 1) * 4 * tokens * (width + shape.vocabulary / tp)
    return (stages - stage) * each + ends


def _check_stage(stages, stage):
    _refuse(not stages >= 1, "stages", "a number from 1 up", stages)
    wrong = type(stage) is not int or not 0 <= stage < stages
    _refuse(wrong, "stage", f"a whole number from 0 to {stages - 1}", stage)


def _refuse(wrong, name, wanted, got):
    if wrong:
        raise InvalidArgument(f"{name} is {wanted}, and got {got!r}.")
