"""A rank that does something after its call is over, as the kernel sees it."""

import sys
import threading
import time

__all__ = ["after_the_outcome"]


def after_the_outcome(do, *args):
    """Do something once this rank has sent its outcome, and waits for the next call."""

    def waits():
        main = threading.main_thread().ident
        while not _receives(sys._current_frames()[main]):
            time.sleep(0.001)
        do(*args)

    threading.Thread(target=waits, daemon=True).start()


def _receives(frame):
    return frame and (frame.f_code.co_name == "receive" or _receives(frame.f_back))
