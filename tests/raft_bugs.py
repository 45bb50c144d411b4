"""Rafts that each lack one rule, by name: `RaftStore` with one method overridden."""

from distlab.agree.raft import RaftStore
from distlab.network import Save


class VoteNotSaved(RaftStore):
    """Saves the term without the vote."""

    def persist(self, *writes):
        kept = [Save("vote", (w[1][0], None)) if w[0] == "vote" else w for w in writes]
        return super().persist(*kept)


class TermNotSaved(RaftStore):
    """Saves neither term nor vote."""

    def persist(self, *writes):
        return super().persist(*[write for write in writes if write[0] != "vote"])


class VoteForOlderLog(RaftStore):
    """Votes for a candidate that lacks entries."""

    def is_up_to_date(self, request):
        return True


class NoPreviousTest(RaftStore):
    """Takes entries whatever comes before them here."""

    def fits(self, previous, previous_term):
        return previous <= self.log.last


class AlwaysTruncates(RaftStore):
    """Cuts its log behind each message, also where it agrees."""

    def merged(self, previous, entries):
        return max(previous, self.log.base), entries


class CommitsOldTerms(RaftStore):
    """Commits what a majority has, of whatever term."""

    def may_commit(self, index):
        return True


class StaleReply(RaftStore):
    """Counts replies to requests of an earlier term."""

    def is_current(self, reply):
        return reply.term <= self.term


class MatchIsNext(RaftStore):
    """Takes a reply for one to the last message."""

    def matched(self, peer, reply):
        return self.next[peer] - 1


class LocalRead(RaftStore):
    """Reads without asking if it still leads."""

    def may_read(self, round):
        return True


class AnswersByIndex(RaftStore):
    """Answers with whatever entry comes at the index."""

    def answers(self, entry, term):
        return True


class AnyMessageResets(RaftStore):
    """Resets its election timer for any message."""

    def resets_timer(self, message):
        return True


class NeverStepsDown(RaftStore):
    """Stays leader when it sees a higher term."""

    def step_down(self, term):
        role = self.role
        yield from super().step_down(term)
        self.role = role


class TwoChanges(RaftStore):
    """Changes the members while another change is under way."""

    def may_change(self):
        return True


class AppliesTwice(RaftStore):
    """Executes a call each time that it is in the log."""

    def is_repeated(self, client, number):
        return False


class WallClockLease(RaftStore):
    """Trusts its clock for its lease."""

    def lease_holds(self):
        return self.clock_s < self.sent_s.get(self.confirmed(), -1e9) + self.lease_s
