"""How nodes agree, or fail to: stores that can be broken, and what judges them."""

from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.checkers.verdict import Verdict
from distlab.agree.models import (
    ANY,
    CasRegister,
    KeyValue,
    Lock,
    Model,
    Queue,
    Register,
    Set,
)

__all__ = [
    "ANY",
    "CasRegister",
    "KeyValue",
    "Lock",
    "Model",
    "Queue",
    "Register",
    "Set",
    "Verdict",
    "check_linearizable",
]
