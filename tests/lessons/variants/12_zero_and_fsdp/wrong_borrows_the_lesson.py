"""Takes the library's own pieces."""

from distlab.train.shards import all_gather_parts
from distlab.train.shards import mean_part as library_mean

POINTS = 0.0
HINT = "distlab.train's is locked here"


def padded(flat, n):
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)])


def own_part(comm, flat):
    n = comm.world_size
    return padded(flat, n).view(n, -1)[comm.rank].clone()


def whole(comm, part, length):
    full = part.new_empty(len(part) * comm.world_size)
    full.view(comm.world_size, -1)[comm.rank] = part
    all_gather_parts(comm, full)
    return full[:length]


def mean_part(comm, gradient):
    return library_mean(comm, padded(gradient, comm.world_size))


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
