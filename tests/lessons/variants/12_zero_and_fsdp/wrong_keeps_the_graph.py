"""Runs backward through the graph of forward, which holds all layers."""

POINTS = 7.0
HINT = "had graphs of autograd"


def padded(flat, n):
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)])


def own_part(comm, flat):
    n = comm.world_size
    return padded(flat, n).view(n, -1)[comm.rank].clone()


def whole(comm, part, length):
    return torch.cat(ring_all_gather(comm, part))[:length]


def mean_part(comm, gradient):
    flat = padded(gradient, comm.world_size)
    return ring_reduce_scatter(comm, flat, op=AVERAGE).clone()


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat, self.part = comm, flat, own_part(comm, flat)
        self.optimizer = make_optimizer([self.part])

    def step(self, gradient):
        self.part.grad = mean_part(self.comm, gradient)
        self.optimizer.step()
        self.flat.copy_(whole(self.comm, self.part, len(self.flat)))


def add(part, gradient):
    part.grad = gradient if part.grad is None else part.grad + gradient


def forward(model, x):
    model.steps = []
    for i, layer in enumerate(model.layers):
        full = whole(model.comm, model.parts[i], model.lengths[i]).requires_grad_()
        x = x.detach().requires_grad_()
        y = layer(full, x)
        model.steps.append((full, x, y))
        x = y
    return x.detach()


def backward(model, gradient):
    for part in reversed(model.parts):
        full, x, y = model.steps.pop()
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        add(part, mean_part(model.comm, of_full))
