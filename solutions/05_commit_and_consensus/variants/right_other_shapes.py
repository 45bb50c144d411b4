"""Says the same in other words, goes back by terms, and keeps a dict on disk."""

POINTS = 12.0
HINT = ""
REPLACE = {
    "return self.term, self.voted_for, self.log": (
        'return {"vote": (self.term, self.voted_for), "log": self.log}'
    ),
    "self.term, self.voted_for, self.log = saved": (
        'self.log, (self.term, self.voted_for) = saved["log"], saved["vote"]'
    ),
    "self.sessions.get(client, (0, None))[0] < number": (
        "client not in self.sessions or number > self.sessions[client][0]"
    ),
}


class Voter(StateMachine):
    def see_term(self, term):
        self.term = term
        self.voted_for = self.leader = None
        self.role, self.votes = FOLLOWER, set()

    def may_vote(self, candidate, request):
        if request.term < self.term:
            return False
        if self.voted_for is not None and self.voted_for != candidate:
            return False
        if request.last_term != self.term_at(self.last):
            return request.last_term > self.term_at(self.last)
        return request.last >= len(self.log)

    def on_request(self, sender, request):
        if not self.may_vote(sender, request):
            return [Send(sender, Vote(self.term, False))]
        self.voted_for = sender
        return [self.election_timer(), Send(sender, Vote(self.term, True))]


class Votes(Voter):
    def stand(self):
        self.see_term(self.term + 1)
        self.role, self.voted_for, self.votes = CANDIDATE, self.me, {self.me}
        about = self.term, self.last, self.term_at(self.last)
        return [Send(peer, RequestVote(*about)) for peer in self.peers]

    def on_vote(self, sender, vote):
        if vote.term < self.term or not vote.granted or self.role != CANDIDATE:
            return
        self.votes.add(sender)
        if 2 * len(self.votes) > len(self.peers) + 1:
            yield from self.lead()


class Follower(Votes):
    def fits(self, previous, previous_term):
        if previous == 0:
            return True
        return previous <= self.last and self.log[previous - 1].term == previous_term

    def merged(self, previous, entries):
        behind = self.log[previous : previous + len(entries)]
        same = [a.term == b.term for a, b in zip(behind, entries)]
        if all(same) and len(behind) == len(entries):
            return list(self.log)
        return self.log[:previous] + list(entries)

    def on_append(self, sender, sent):
        if sent.term < self.term:
            yield Send(sender, AppendReply(self.term, False, 0, sent.round))
            return
        if self.role == CANDIDATE:
            self.role = FOLLOWER
        self.leader = sender
        yield self.election_timer()
        if self.fits(sent.previous, sent.previous_term):
            self.log = self.merged(sent.previous, sent.entries)
            agrees = sent.previous + len(sent.entries)
            yield Send(sender, AppendReply(self.term, True, agrees, sent.round))
            if sent.commit > self.commit:
                yield from self.commit_up_to(min(sent.commit, agrees))
        else:
            # The whole term that conflicts is left out, as in section 5.3.
            last = min(self.last, sent.previous - 1)
            conflict = self.term_at(sent.previous)
            while last > self.commit and self.term_at(last) == conflict:
                last -= 1
            yield Send(sender, AppendReply(self.term, False, last, sent.round))


class Replicas(Follower):
    def may_commit(self, index):
        if self.log[index - 1].term != self.term:
            return False
        have = [peer for peer in self.peers if self.match[peer] >= index]
        return len(have) + 1 >= self.majority

    def on_reply(self, sender, reply):
        if self.role == LEADER and reply.term == self.term:
            if not reply.fits:
                self.next[sender] = max(self.match[sender], reply.last) + 1
                yield from self.send_entries(sender)
            elif reply.last > self.match[sender]:
                self.match[sender] = reply.last
                self.next[sender] = reply.last + 1
                held = sorted([self.last, *self.match.values()], reverse=True)
                index = held[self.majority - 1]
                if index > self.commit and self.may_commit(index):
                    yield from self.commit_up_to(index)
