"""Cuts parts of len // n, so that the last numbers are in nobody's."""

POINTS = 0.0
HINT = "The last numbers are never trained"


def own_part(comm, flat):
    length = len(flat) // comm.world_size
    return flat[comm.rank * length : (comm.rank + 1) * length].clone()


def whole(comm, part, length):
    return torch.cat(ring_all_gather(comm, part))[:length]


def mean_part(comm, gradient):
    flat = gradient[: len(gradient) // comm.world_size * comm.world_size].clone()
    return ring_reduce_scatter(comm, flat, op=AVERAGE).clone()


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat, self.part = comm, flat, own_part(comm, flat)
        self.optimizer = make_optimizer([self.part])

    def step(self, gradient):
        self.part.grad = mean_part(self.comm, gradient)
        self.optimizer.step()
        trained = whole(self.comm, self.part, len(self.flat))
        self.flat[: len(trained)] = trained


def add(part, gradient):
    part.grad = gradient if part.grad is None else part.grad + gradient


def forward(model, x):
    model.inputs = []
    for i, layer in enumerate(model.layers):
        model.inputs.append(x)
        with torch.no_grad():
            x = layer(whole(model.comm, model.parts[i], model.lengths[i]), x)
    return x


def backward(model, gradient):
    for i in reversed(range(len(model.layers))):
        full = whole(model.comm, model.parts[i], model.lengths[i]).requires_grad_()
        x = model.inputs[i].requires_grad_()
        y = model.layers[i](full, x)
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        add(model.parts[i], mean_part(model.comm, of_full))
