"""Checkpoint intervals: the total cost of failures and saves, and its minimum.

    |---- compute ----|save|---- compute ----|save|-- lost --✗ restart |---- ...
     interval          save                                    restart

Symbols: tau the seconds of work between two saves, delta those of a save, R those from
a failure to the next work, M the mean time between failures of the whole job. Failures
are memoryless (exponential). In their first weeks machines fail more often, and the
failures behind one switch are correlated: for both the formulas are too optimistic.
"""

import math

__all__ = [
    "LLAMA_3_INTERRUPTIONS",
    "best_interval",
    "daly",
    "goodput",
    "job_mtbf",
    "young",
]

# Unexpected interruptions of 54 days of pre-training on 16,384 GPUs, by root cause.
# Source: Llama team, The Llama 3 Herd of Models, 2024, table 5.
LLAMA_3_INTERRUPTIONS = {
    "faulty GPU": 148,
    "GPU HBM3 memory": 72,
    "software bug": 54,
    "network switch or cable": 35,
    "unplanned host maintenance": 32,
    "GPU SRAM memory": 19,
    "GPU system processor": 17,
    "NIC": 7,
    "NCCL watchdog timeout": 7,
    "silent data corruption": 6,
    "GPU thermal interface and sensor": 6,
    "SSD": 3,
    "power supply": 3,
    "server chassis": 2,
    "IO expansion board": 2,
    "dependency": 2,
    "CPU": 2,
    "system memory": 2,
}


def job_mtbf(device_mtbf_s: float, devices: int) -> float:
    """Return M of a job that fails when any one of its devices does.

    M = M_device / n
    """
    return device_mtbf_s / devices


def young(save_s: float, mtbf_s: float) -> float:
    """Return the interval that is best if tau and delta are much shorter than M.

    A share delta/tau of the time is spent on saves, and tau/2M on lost work; their sum
    is smallest at tau = sqrt(2 delta M).

    Source: Young, A First Order Approximation to the Optimum Checkpoint Interval, 1974.
    """
    return math.sqrt(2 * save_s * mtbf_s)


def daly(save_s: float, mtbf_s: float) -> float:
    """Return the best interval in a model in which saves can fail, too.

    tau = sqrt(2 delta M) (1 + sqrt(x)/3 + x/9) - delta, x = delta/2M, for delta < 2M;
    else tau = M.

    Source: Daly, A Higher Order Estimate of the Optimum Checkpoint Interval for
    Restart Dumps, 2006, equation 37.
    """
    if save_s >= 2 * mtbf_s:
        return mtbf_s
    x = save_s / (2 * mtbf_s)
    return young(save_s, mtbf_s) * (1 + math.sqrt(x) / 3 + x / 9) - save_s


def goodput(interval_s: float, save_s: float, restart_s: float, mtbf_s: float) -> float:
    """Return the share of all time whose work is kept.

    T/T_work = M/tau e^(R/M) (e^((tau + delta)/M) - 1); saves and restarts fail, too.

    Source: Daly 2006, equation 20.
    """
    tau, m = interval_s, mtbf_s
    return tau / (m * math.exp(restart_s / m) * math.expm1((tau + save_s) / m))


def best_interval(save_s: float, mtbf_s: float) -> float:
    """Return the interval with the best `goodput`, to 1e-9 of M.

    It solves e^((tau + delta)/M) (1 - tau/M) = 1; the time of a restart makes no
    difference.
    """
    low, high = 0.0, mtbf_s
    while high - low > 1e-9 * mtbf_s:
        tau = (low + high) / 2
        if math.exp((tau + save_s) / mtbf_s) * (1 - tau / mtbf_s) > 1:
            low = tau
        else:
            high = tau
    return (low + high) / 2
