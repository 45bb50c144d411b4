"""Gives out lost jobs when there is nothing else to do."""

POINTS = 4.0
HINT = "A lost job goes first"


class Robust(Asha):
    def on_lost(self, trial, rung):
        job = trial, rung
        if job in self.lost or trial in self.losses[rung]:
            return
        self.times_lost[job] += 1
        if self.times_lost[job] < MOST_TRIES:
            self.lost.append(job)
        else:
            self.on_report(trial, rung, math.nan)

    def choose(self):
        if (job := super().choose()) is not None:
            return job
        while self.lost:
            trial, rung = self.lost.pop(0)
            if trial not in self.losses[rung]:
                return trial, rung
        return None

    def on_report(self, trial, rung, loss):
        if trial not in self.losses[rung]:
            super().on_report(trial, rung, loss)
