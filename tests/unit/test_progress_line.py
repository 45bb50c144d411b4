"""The progress line: it ends with its body, however that ends."""

import threading

import pytest

from distlab.calls import progress


def test_an_interrupt_while_its_thread_starts_leaves_no_thread(monkeypatch):
    made = []

    class InterruptedThread(threading.Thread):
        def start(self):
            made.append(self)
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.threading, "Thread", InterruptedThread)
    with pytest.raises(KeyboardInterrupt), progress.Progress("waiting"):
        pass
    made[0].join(10)
    assert not made[0].is_alive() and not progress._open
