"""Ranks a trial by counting the better ones, and lists all jobs to take the first."""

POINTS = 12.0
HINT = ""


class Rungs(Scheduler):
    def rung_steps(self, least, most, eta):
        count = sum(1 for power in range(64) if least * eta**power <= most)
        return [least * eta**power for power in range(count)]

    def top(self, rung):
        losses = self.losses[rung]
        places = {}
        for trial, loss in losses.items():
            better = [t for t in losses if (losses[t], t) < (loss, trial)]
            if loss == loss and len(better) < len(losses) // self.eta:
                places[len(better)] = trial
        return [places[place] for place in sorted(places)]


class Asha(Rungs):
    def choose(self):
        jobs = [
            (trial, rung + 1)
            for rung in reversed(range(len(self.rungs) - 1))
            for trial in self.top(rung)
            if trial not in self.promoted[rung]
        ]
        jobs += [(trial, 0) for trial in range(self.begun, self.trials)] + [None]
        if jobs[0] is not None:
            trial, rung = jobs[0]
            self.promoted[rung - 1] |= {trial} if rung else set()
            self.begun += rung == 0
        return jobs[0]

    def on_report(self, trial, rung, loss):
        self.losses[rung][trial] = loss
