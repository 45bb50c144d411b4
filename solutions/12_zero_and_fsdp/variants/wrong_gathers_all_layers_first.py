"""Starts the all-gathers of all layers before the first layer is called."""

POINTS = 7.0
HINT = "All-gathers run ahead"


def prefetching_forward(model, x):
    pairs = zip(model.parts, model.lengths)
    requests = [model.comm.start(whole, part, length) for part, length in pairs]
    model.inputs = []
    for layer in model.layers:
        model.inputs.append(x)
        with torch.no_grad():
            x = layer(requests.pop(0).wait(), x)
    return x
