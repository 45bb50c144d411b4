"""Keeps autograd's graph from forward, and empties and refills what it saved."""

POINTS = 10.0
HINT = ""


def room(comm, length):
    return -(-length // comm.world_size) * comm.world_size


def own_part(comm, flat):
    rest = room(comm, len(flat)) - len(flat)
    longer = torch.nn.functional.pad(flat, (0, rest))
    return longer.view(comm.world_size, -1)[comm.rank].clone()


def fill(comm, part, padded):
    padded.untyped_storage().resize_(len(padded) * padded.element_size())
    torch.cat(ring_all_gather(comm, part), out=padded.data)  # unseen by autograd


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat = comm, flat
        self.part = own_part(comm, flat)
        self.optimizer = make_optimizer([self.part])

    def step(self, gradient):
        self.part.grad = mean_part(self.comm, gradient)
        self.optimizer.step()
        everything = torch.stack(ring_all_gather(self.comm, self.part)).flatten()
        self.flat[:] = everything[: len(self.flat)]


def mean_part(comm, gradient):
    rest = room(comm, len(gradient)) - len(gradient)
    longer = torch.cat([gradient, gradient.new_zeros(rest)])
    return ring_reduce_scatter(comm, longer, op=AVERAGE).clone()


def forward(model, x):
    model.graph = []
    for i, layer in enumerate(model.layers):
        padded = model.parts[i].new_empty(room(model.comm, model.lengths[i]))
        fill(model.comm, model.parts[i], padded)
        full = padded[: model.lengths[i]].requires_grad_()
        x = x.detach().requires_grad_()
        y = layer(full, x)
        padded.untyped_storage().resize_(0)
        model.graph.append((padded, full, x, y))
        x = y
    return x.detach()


def backward(model, gradient):
    for part in reversed(model.parts):
        padded, full, x, y = model.graph.pop()
        fill(model.comm, part, padded)
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        padded.untyped_storage().resize_(0)
        mean = mean_part(model.comm, of_full)
        if part.grad is None:
            part.grad = torch.zeros_like(part)
        part.grad += mean
        del of_full


def prefetching_forward(model, x):
    model.graph, room_of = [], [room(model.comm, length) for length in model.lengths]
    fulls = [p.new_empty(r) for p, r in zip(model.parts, room_of)]
    for full in fulls[1:]:
        full.untyped_storage().resize_(0)
    request = model.comm.start(fill, model.parts[0], fulls[0])
    for i, layer in enumerate(model.layers):
        request.wait()
        if i + 1 < len(fulls):
            request = model.comm.start(fill, model.parts[i + 1], fulls[i + 1])
        full = fulls[i][: model.lengths[i]].requires_grad_()
        x = x.detach().requires_grad_()
        y = layer(full, x)
        fulls[i].untyped_storage().resize_(0)
        model.graph.append((fulls[i], full, x, y))
        x = y
    return x.detach()


def prefetching_backward(model, gradient):
    def begin(i):
        return model.comm.start(fill, model.parts[i], model.graph[i][0])

    def settle(part, leaving):
        part.grad = leaving.wait() + (0 if part.grad is None else part.grad)

    last, before = len(model.parts) - 1, []
    request = begin(last)
    for i in range(last, -1, -1):
        request.wait()
        padded, full, x, y = model.graph.pop()
        if i:
            request = begin(i - 1)
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        padded.untyped_storage().resize_(0)
        for each in before:
            settle(*each)
        before = [(model.parts[i], model.comm.start(mean_part, of_full))]
        del of_full
    settle(*before[0])
