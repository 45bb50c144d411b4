"""Has a receive under way from each worker; recounts clocks from who sent what."""

from collections import Counter

POINTS = 10.0
HINT = ""


class Server:
    def __init__(self, values, rate, bound, workers):
        self.values, self.rate, self.bound = values.clone(), rate, bound
        self.workers, self.sent, self.held, self.ages = list(workers), [], [], []

    @property
    def version(self):
        return len(self.sent)

    def push(self, worker, version, gradient):
        self.ages += [len(self.sent) - version]
        self.values = self.values.sub(gradient, alpha=self.rate)
        self.sent.append(worker)
        self.held.append(worker)
        return self.free()

    def free(self):
        clocks = Counter(self.sent)
        ahead = {w: max(clocks[w] - clocks[o] for o in self.workers) for w in self.held}
        self.held = [w for w in self.held if ahead[w] > self.bound]
        return {w for w in ahead if w not in self.held}


class RobustServer(Server):
    def push(self, worker, version, gradient):
        if worker in self.workers and not gradient.abs().sum() < float("inf"):
            raise ValueError(f"gradient of {worker}: {gradient.tolist()}")
        return super().push(worker, version, gradient) if worker in self.workers else ()

    def leave(self, worker):
        self.workers = [w for w in self.workers if w != worker]
        self.held = [w for w in self.held if w != worker]
        return self.free()


def serve(comm, server, updates):
    arriving, held, over = {}, set(), False

    def answer(worker):
        last = torch.tensor([-1.0 if over else server.version], dtype=torch.float64)
        comm.send(torch.cat([server.values, last]), worker)
        held.discard(worker)
        if not over:
            room = torch.zeros(len(server.values) + 1, dtype=torch.float64)
            arriving[worker] = comm.irecv(room, worker)

    for worker in range(1, comm.world_size):
        answer(worker)
    while arriving:
        workers = list(arriving)
        worker = workers[comm.wait_any([arriving[w] for w in workers])]
        message = arriving.pop(worker).wait()
        if message[-1] < 0:
            ready = server.leave(worker)
        elif over:
            ready = [worker]
        else:
            ready = server.push(worker, int(message[-1]), message[:-1])
            held.add(worker)
            over = server.version == updates
        for each in list(held) if over and ready != [worker] else ready:
            answer(each)
