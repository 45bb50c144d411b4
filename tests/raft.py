"""A second Raft, which shares no code with the library's, and four planted bugs.

The monitors of Raft and `fuzz` are tried on it: they must not depend on how the
library's own is written.

Source: Ongaro and Ousterhout, "In search of an understandable consensus algorithm"
(2014), figures 2 and 3.
"""

from distlab.agree.raft.monitors import RaftView, raft_monitors
from distlab.network import Node, Refuse, Reply, Save, Send, SetTimer

HEARTBEAT_S = 0.01


class Raft(Node):
    """A replicated log; a call is answered when its entry is committed.

    log: (term, request, value) of each entry, from 1 on. commit: how many of them are
    committed. next, match: the leader's view of each peer.
    """

    def on_start(self, saved):
        self.term, self.voted, self.log = saved.get("state", (0, None, ()))
        self.role, self.leader, self.commit = "follower", None, 0
        self.votes, self.next, self.match, self.asked = set(), {}, {}, {}
        return self.wait()

    def wait(self):
        return [SetTimer("election", self.random.uniform(0.02, 0.04))]

    def save(self):
        return [Save("state", (self.term, self.voted, self.log))]

    def last(self):
        return (self.log[-1][0] if self.log else 0, len(self.log))

    def term_of(self, at):
        return self.log[at - 1][0] if at else 0

    def majority(self, count):
        return count > (len(self.peers) + 1) // 2

    def step_down(self, term):
        self.role, self.term, self.voted = "follower", term, None
        self.asked = {}  # these may still be committed, so there is no answer
        return [*self.save(), *self.wait()]

    def on_timer(self, name):
        if name == "heartbeat":
            return self.replicate() if self.role == "leader" else []
        if self.role == "leader":
            return self.wait()
        self.role, self.term, self.voted = "candidate", self.term + 1, self.me
        self.votes = {self.me}
        asks = [Send(p, ("ask", self.term, *self.last())) for p in self.peers]
        return [*self.save(), *self.wait(), *asks]

    def replicate(self):
        appends = [self.append_to(peer) for peer in self.peers]
        return [*appends, SetTimer("heartbeat", HEARTBEAT_S)]

    def append_to(self, peer):
        at = self.next[peer] - 1
        rest = ("append", self.term, at, self.term_of(at), self.log[at:], self.commit)
        return Send(peer, rest)

    def on_client(self, request, call):
        if self.role != "leader":
            return [Refuse(request, "not the leader", to=self.leader)]
        self.log = (*self.log, (self.term, request, call.value))
        self.asked[request] = len(self.log)
        return [*self.save(), *self.replicate()]

    def on_message(self, sender, message):
        word, term, *rest = message
        before = self.step_down(term) if term > self.term else []
        return [*before, *getattr(self, f"on_{word}")(sender, term, *rest)]

    def grants(self, sender, term, last_term, length):
        up_to_date = (last_term, length) >= self.last()
        return term == self.term and self.voted in (None, sender) and up_to_date

    def on_ask(self, sender, term, last_term, length):
        if not self.grants(sender, term, last_term, length):
            return [Send(sender, ("grant", self.term, False))]
        self.voted = sender
        return [*self.save(), Send(sender, ("grant", term, True)), *self.wait()]

    def on_grant(self, sender, term, granted):
        if self.role != "candidate" or term < self.term or not granted:
            return []
        self.votes.add(sender)
        if not self.majority(len(self.votes)):
            return []
        self.role, self.leader = "leader", self.me
        self.next = dict.fromkeys(self.peers, len(self.log) + 1)
        self.match = dict.fromkeys(self.peers, 0)
        return self.replicate()

    def on_append(self, sender, term, at, at_term, entries, commit):
        if term < self.term:
            return [Send(sender, ("appended", self.term, False, 0))]
        self.role, self.leader = "follower", sender
        if not self.fits(at, at_term):
            return [Send(sender, ("appended", term, False, at)), *self.wait()]
        self.log = self.merged(at, entries)
        self.commit = max(self.commit, min(commit, at + len(entries)))
        done = Send(sender, ("appended", term, True, self.matched(at, entries)))
        return [*self.save(), done, *self.wait()]

    def matched(self, at, entries):
        return at + len(entries)

    def fits(self, at, at_term):
        return at <= len(self.log) and self.term_of(at) == at_term

    def merged(self, at, entries):
        for offset, entry in enumerate(entries):
            if self.log[at + offset : at + offset + 1] != (entry,):
                return (*self.log[: at + offset], *entries[offset:])
        return self.log

    def on_appended(self, sender, term, done, at):
        if self.role != "leader" or term < self.term:
            return []
        if not done:
            self.next[sender] = max(1, min(self.next[sender], at))
            return []
        self.match[sender] = max(self.match[sender], at)
        self.next[sender] = self.match[sender] + 1
        return self.committed()

    def may_commit(self, at):
        return self.term_of(at) == self.term

    def committed(self):
        for at in range(len(self.log), self.commit, -1):
            copies = 1 + sum(match >= at for match in self.match.values())
            if self.majority(copies) and self.may_commit(at):
                self.commit = at
                break
        ready = [r for r, at in self.asked.items() if at <= self.commit]
        return [Reply(r, self.asked.pop(r)) for r in ready]


class VotesTwice(Raft):
    """Votes for any number of candidates in a term."""

    def grants(self, sender, term, last_term, length):
        return term == self.term and (last_term, length) >= self.last()


class CommitsOldTerms(Raft):
    """Commits an entry of an earlier term by the number of its copies (figure 8)."""

    def may_commit(self, at):
        return True


class FitsAnywhere(Raft):
    """Appends entries after one of another term."""

    def fits(self, at, at_term):
        return at <= len(self.log)


class AcknowledgesTooMuch(Raft):
    """Acknowledges its whole log, also what the leader has not sent."""

    def matched(self, at, entries):
        return len(self.log)


def monitors():
    """Return the four monitors of Raft, for nodes of this one."""
    return raft_monitors(
        lambda n: RaftView(n.term, n.role == "leader", n.log, 0, n.commit, n.commit)
    )
