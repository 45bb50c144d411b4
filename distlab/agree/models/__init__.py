"""Models: what a store of one copy answers, if it has one client.

A model of your own needs the words that it knows, what it begins with, and `step`:

    class Counter(Model):
        operations = ("increment", "read")
        initial = 0

        def step(self, state, op, value, result):
            if op == "increment":
                return state + 1
            if result == state:
                return state
"""

from distlab.agree.models.lock import Lock
from distlab.agree.models.model import ANY, Model
from distlab.agree.models.queue import Queue
from distlab.agree.models.registers import CasRegister, KeyValue, Register
from distlab.agree.models.set import Set

__all__ = [
    "ANY",
    "CasRegister",
    "KeyValue",
    "Lock",
    "Model",
    "Queue",
    "Register",
    "Set",
]
