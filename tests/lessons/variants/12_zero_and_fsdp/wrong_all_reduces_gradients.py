"""All-reduces the gradients, and takes its part of that."""

from distlab.collectives import ring_all_reduce

POINTS = 4.0
HINT = "an all-reduce alone is two"


def padded(flat, n):
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)])


def own_part(comm, flat):
    n = comm.world_size
    return padded(flat, n).view(n, -1)[comm.rank].clone()


def whole(comm, part, length):
    return torch.cat(ring_all_gather(comm, part))[:length]


def mean_part(comm, gradient):
    flat = padded(gradient, comm.world_size)
    ring_all_reduce(comm, flat, op=AVERAGE)
    return own_part(comm, flat)


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
