"""How nodes agree, or fail to: stores that can be broken, and what judges them."""

from distlab.agree.checkers import (
    Verdict,
    check_causal,
    check_converged,
    check_linearizable,
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_sequential,
    check_writes_follow_reads,
)
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
    "check_causal",
    "check_converged",
    "check_linearizable",
    "check_monotonic_reads",
    "check_monotonic_writes",
    "check_read_your_writes",
    "check_sequential",
    "check_writes_follow_reads",
]
