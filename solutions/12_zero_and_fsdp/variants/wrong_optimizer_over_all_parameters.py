"""Makes the optimizer over everything, and steps one part."""

POINTS = 7.0
HINT = "made over all parameters"


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat, self.all = comm, flat, padded(flat, comm.world_size)
        self.part = self.all.view(comm.world_size, -1)[comm.rank]
        self.optimizer = make_optimizer([self.all])

    def step(self, gradient):
        gradient = padded(gradient, self.comm.world_size)
        self.all.grad = torch.zeros_like(self.all)
        own = self.all.grad.view(self.comm.world_size, -1)[self.comm.rank]
        own.copy_(ring_reduce_scatter(self.comm, gradient, op=AVERAGE))
        self.optimizer.step()
        self.flat.copy_(whole(self.comm, self.part, len(self.flat)))
