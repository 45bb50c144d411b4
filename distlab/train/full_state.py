"""Full state of a model: torch's format, and the same by parameter.

    torch's     {"model": module.state_dict(), "optimizer": optimizer.state_dict()}
    by name     {"blocks.0.weight": {"values": ..., "exp_avg": ..., "step": ...}, ...}

torch's optimizers count parameters in order of registration; with `MasterWeights`, only
those that are trained.
"""

import torch

from distlab.errors import CheckpointError
from distlab.train.state import Learned

__all__ = ["as_full", "by_name", "check_full", "flat_parts", "kinds_of_state"]


def as_full(learned: Learned, taken: dict, states: dict[str, dict]) -> dict:
    """Return the full state in torch's format, from `taken` and the states by name."""
    names = learned.trained.names
    values = {alias: states[n]["values"] for alias, n in names.items() if n in states}
    order, state = _order(learned), {}
    for place, name in enumerate(order):
        rest = dict(states.get(name, {}))
        masters = rest.pop("masters", None)
        rest.pop("values", None)
        if rest:
            state[place] = rest
    options = taken["options"] | {"params": list(range(len(order)))}
    optimizer = {"state": state, "param_groups": [options]}
    if learned.has_masters:
        masters = [states[name]["masters"] for name in order]
        optimizer = {"masters": masters, "optimizer": optimizer}
    return {"model": taken["rest"] | values, "optimizer": optimizer}


def by_name(content: dict, learned: Learned) -> dict[str, dict]:
    """Return the states by name of a full state that passed `check_full`."""
    optimizer = content["optimizer"]
    masters = optimizer.get("masters")
    state = optimizer["optimizer"]["state"] if masters else optimizer["state"]
    trained = {name for group in learned.trained.groups for name in group.names}
    found = {}
    for place, name in enumerate(_order(learned)):
        if name in trained:
            found[name] = {"values": content["model"][name], **state.get(place, {})}
            if masters:
                found[name]["masters"] = masters[place]
    return found


def check_full(content: dict, learned: Learned) -> dict:
    """Return the options and the unsharded rest of a full state, if it fits.

    Raises: CheckpointError, naming the entry of another model or optimizer.
    """
    if not isinstance(content, dict) or not {"model", "optimizer"} <= content.keys():
        raise CheckpointError('it is no full state: it has no "model" and "optimizer".')
    model, optimizer = dict(content["model"]), content["optimizer"]
    if ("masters" in optimizer) != learned.has_masters:
        other = "out" if learned.has_masters else ""
        raise CheckpointError(
            f"it was saved with{other} master weights, and this is {learned.kind}."
        )
    if learned.has_masters:
        optimizer = optimizer["optimizer"]
    shapes = learned.shapes()
    for name, shape in shapes.items():
        saved = list(model[name].shape) if name in model else "no such parameter"
        if saved != shape:
            raise CheckpointError(
                f"it is of another model: for {name} it has {saved}, and this one "
                f"has {shape}."
            )
    first = learned.trained.names
    rest = {k: v for k, v in model.items() if first.get(k) not in shapes}
    (options,) = optimizer["param_groups"]
    count = len(options.pop("params"))
    unknown = [name for name in rest if name not in learned.rest()]
    if unknown or count != len(_order(learned)):
        what = unknown[0] if unknown else f"an optimizer of {count} parameters"
        raise CheckpointError(f"it is of another model: it has {what}.")
    if options.keys() != learned.options().keys():
        raise CheckpointError(
            f"it was saved with another optimizer than {learned.kind}: its options are "
            f"{', '.join(sorted(options))}."
        )
    return {"options": options, "rest": rest}


def kinds_of_state(group, states: dict[str, dict]) -> tuple[dict, dict]:
    """Return a group's kinds of state: kind -> dtype per element, and kind -> value."""
    types, once = {}, {}
    for name, shape in zip(group.names, group.shapes, strict=True):
        for key, value in states[name].items():
            # A count of steps looks like the moment of a parameter that is one number.
            if torch.is_tensor(value) and value.shape == shape and key != "step":
                types[key] = value.dtype
            else:
                once[key] = value
    return types, once


def flat_parts(group, states, key, world_size, like) -> list[torch.Tensor]:
    """Return one kind of a group's state, flat, as a list of a part for every rank."""
    flat = like.new_zeros(group.part * world_size)
    for name, view in zip(group.names, group.views(flat), strict=True):
        if key in states[name]:
            view.copy_(states[name][key])
    return list(flat.split(group.part))


def _order(learned):
    names = list(dict.fromkeys(learned.trained.names.values()))
    if learned.has_masters:
        return [name for name in names if name in learned.shapes()]
    return names
