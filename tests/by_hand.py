"""Nodes driven by hand: every message is delivered, lost or held back by the test."""

import copy
import random

from distlab.network import CancelTimer, Refuse, Reply, Save, Send, SetTimer
from distlab.trace import Call


class Hands:
    """Three nodes, and what is between them, moved by hand."""

    def __init__(self, make, nodes=3):
        self.make, self.numbers = make, range(nodes)
        self.disks = [{} for _ in self.numbers]
        self.mail, self.timers, self.answers = [], {}, {}
        self.nodes = [None for _ in self.numbers]
        self.requests = iter(range(10**6))
        for me in self.numbers:
            self.start(me)

    def start(self, me):
        self.nodes[me] = self.make(me, [n for n in self.numbers if n != me])
        self.nodes[me].random = random.Random(me)
        self.timers = {(n, name): 1 for n, name in self.timers if n != me}
        self.do(me, self.nodes[me].on_start(copy.deepcopy(self.disks[me])))

    def do(self, me, effects):
        for effect in effects or ():
            match effect:
                case Send(to, message):
                    self.mail.append((me, to, copy.deepcopy(message)))
                case Save(name, value):
                    self.disks[me][name] = copy.deepcopy(value)
                case SetTimer(name, _):
                    self.timers[me, name] = 1
                case CancelTimer(name):
                    self.timers.pop((me, name), None)
                case Reply(request, result):
                    assert request not in self.answers
                    self.answers[request] = result
                case Refuse(request, why):
                    assert request not in self.answers
                    self.answers[request] = why

    def ask(self, node, *call):
        request = next(self.requests)
        self.do(node, self.nodes[node].on_client(request, Call(*call)))
        return request

    def deliver(self, passes=lambda sender, to, message: True):
        """Deliver all mail that passes, and what comes of it; lose the rest."""
        delays = 0
        while self.mail:
            mail, self.mail, delays = self.mail, [], delays + 1
            for sender, to, message in mail:
                if passes(sender, to, message):
                    self.do(to, self.nodes[to].on_message(sender, message))
        return delays

    def ring(self):
        """Have every timer run out that is set now."""
        for node, name in list(self.timers):
            if self.timers.pop((node, name), None):
                self.do(node, self.nodes[node].on_timer(name))

    def delays(self, node, *call):
        """Return how many messages, one after another, a call waits for."""
        request = self.ask(node, *call)
        waited = 0
        while request not in self.answers:
            mail, self.mail, waited = self.mail, [], waited + 1
            assert mail, f"{call} at node {node} is never answered"
            for sender, to, message in mail:
                self.do(to, self.nodes[to].on_message(sender, message))
        return waited

    def settle(self):
        for _ in range(20):
            self.ring()
            self.deliver()

    def call(self, node, *call):
        """Ask, deliver everything, and return the answer."""
        request = self.ask(node, *call)
        self.deliver()
        return self.answers[request]


def cut_off(*alone):
    return lambda sender, to, message: (sender in alone) == (to in alone)
