"""Looks at the values after the update: they are not finite any more."""

POINTS = 7.0
HINT = "before anything changes"


class RobustServer(Server):
    def push(self, worker, version, gradient):
        if worker not in self.clocks:
            return []
        ready = super().push(worker, version, gradient)
        if not torch.isfinite(self.values).all():
            raise ValueError(f"worker {worker} sent a gradient that is not finite")
        return ready

    def leave(self, worker):
        self.clocks.pop(worker, None)
        self.waiting.discard(worker)
        return self.released()
