"""Runs backward through the graph of forward, which holds all layers."""

POINTS = 6.0
HINT = "in the graph of an output"


def forward(model, x):
    model.steps = []
    for layer, part, length in zip(model.layers, model.parts, model.lengths):
        full = whole(model.comm, part, length).requires_grad_()
        x = x.detach().requires_grad_()
        y = layer(full, x)
        model.steps.append((full, x, y))
        x = y
    return x.detach()


def backward(model, gradient):
    for part in reversed(model.parts):
        full, x, y = model.steps.pop()
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        of_full = padded(of_full, model.comm.world_size)
        mean = ring_reduce_scatter(model.comm, of_full, op=AVERAGE).clone()
        part.grad = mean if part.grad is None else part.grad + mean
