"""Holds back whose gradient is old, not who is ahead."""

POINTS = 0.0
HINT = "Count each worker's gradients"


class Server:
    def __init__(self, values, rate, bound, workers):
        self.values, self.version, self.ages = values, 0, []
        self.rate, self.bound, self.waiting = rate, bound, set()
        self.clocks = dict.fromkeys(workers, 0)

    def push(self, worker, version, gradient):
        self.ages.append(self.version - version)
        self.values -= self.rate * gradient
        self.version += 1
        self.clocks[worker] += 1
        self.waiting.add(worker)
        if self.ages[-1] > self.bound:
            return []
        return self.released()

    def released(self):
        ready, self.waiting = self.waiting, set()
        return ready
