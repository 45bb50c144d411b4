"""DeepSpeed: its own engine for ZeRO 1, 2 and 3, inside a rank, on the CPU.

    def train(comm):
        engine = deepspeed.engine(model, make_optimizer, stage=2)
        for x, y in batches:
            loss = loss_of(engine(x), y)
            engine.backward(loss)
            engine.step()

    run(train, 4)

The engine is DeepSpeed's, and so is everything that is called on it. It communicates
through the process group that the rank is in already. `configuration` returns the
settings that are usually in a file `ds_config.json`.

DeepSpeed compiles some operations in C++ when it first needs them, such as a gloo that
uses shared memory. Here all of them are marked as incompatible: so no compiler is
needed, no folder of compiled code stays behind, and the first engine does not take half
a minute. Importing it costs a rank 0.4 s and 20 MB, the first engine 0.2 s and 15 MB;
the notebook's process never imports it.
"""

import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec

from torch import nn

from distlab.engines.install_paths import environment
from distlab.errors import EngineMissing, InvalidArgument

__all__ = ["configuration", "engine", "is_installed"]


def is_installed() -> bool:
    """Return True if DeepSpeed is installed."""
    return find_spec("deepspeed") is not None


def configuration(stage: int, *, batch: int = 1) -> dict:
    """Return the settings of an engine, under DeepSpeed's own names.

    Gradients are not clipped, which by default they are, at a norm of 1. In stage 3
    small parameters are sharded as large ones are; by default each rank keeps those
    under 100,000 elements whole. And PyTorch's `linear` is unchanged; by default
    stage 3 replaces it, for every model of the process and permanently.

    batch: samples per rank and step. DeepSpeed refuses to start without a number, and
        uses it for its report of throughput only.
    Raises: InvalidArgument for a stage other than 1, 2 or 3.
    """
    if stage not in (1, 2, 3):
        raise InvalidArgument(f"stage is 1, 2 or 3, and got {stage!r}.")
    return {
        "train_micro_batch_size_per_gpu": batch,
        "gradient_clipping": 0.0,
        "zero_allow_untested_optimizer": True,  # PyTorch's own, not a fused one
        "zero_optimization": {
            "stage": stage,
            "stage3_param_persistence_threshold": 0,
            "memory_efficient_linear": False,
        },
    }


def engine(module: nn.Module, make_optimizer: Callable, stage: int, *, batch: int = 1):
    """Return a `DeepSpeedEngine` that trains `module` on all ranks; call it on each.

    Rank 0's parameters are copied to all. The stages keep master weights and optimizer
    state in float32, whatever type the module has.

    make_optimizer: makes an optimizer from a list of parameters.
    Raises: EngineMissing if DeepSpeed is not installed; InvalidArgument for a stage
        other than 1, 2 or 3.
    """
    settings = configuration(stage, batch=batch)
    if not is_installed():
        raise EngineMissing.of("deepspeed.engine", ["DeepSpeed"], "deepspeed")
    with environment({"DS_ACCELERATOR": "cpu"}):  # it would look for GPUs, and warn
        import deepspeed
        from deepspeed.runtime import compiler

        deepspeed.ops.__compatible_ops__ = {}  # none, so that it compiles none
        # The functions it decorates for PyTorch's compiler are not used here, and
        # loading the compiler takes longer than all the rest.
        compiler.compile = lambda: compiler.dummy_decorator
        deepspeed.utils.logger.setLevel(logging.ERROR)
        # On a CPU that computes in float16, stage 3 refuses a module in float64.
        deepspeed.get_accelerator().is_fp16_supported = lambda: False
        # It calls collectives by names that PyTorch is about to change.
        renamed = r"`torch\.distributed\."
        warnings.filterwarnings("ignore", message=renamed, category=FutureWarning)
        trained = [p for p in module.parameters() if p.requires_grad]
        made, *_ = deepspeed.initialize(
            model=module,
            optimizer=make_optimizer(trained),
            config=settings,
            dist_init_required=False,
        )
    return made
