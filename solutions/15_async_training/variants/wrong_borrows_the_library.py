"""Asks the library's rule."""

from distlab.train.asynchronous import Asynchronous

POINTS = 0.0
HINT = "Nothing of your own does the work"


class Server:
    def __init__(self, values, rate, bound, workers):
        def sgd(parameters):
            return torch.optim.SGD(parameters, rate)

        self.rule = Asynchronous(values, sgd, bound=bound)
        self.values, self.ages = values, []
        self.rule.begin(workers)

    def push(self, worker, version, gradient):
        self.ages.append(self.rule.version - version)
        return self.rule.push(worker, version, gradient)
