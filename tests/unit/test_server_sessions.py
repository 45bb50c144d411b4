"""Sessions of the process server whose owners are gone."""

import selectors
import socket

from distlab.processes.server import OwnerSession, Place, Server


class Alone(Server):
    """A server without a kernel, children and a loop."""

    def __init__(self):
        self.selector, self.sessions = selectors.DefaultSelector(), set()
        self.place, self._bereaved = Place(), False

    def _kill_orphans(self):
        return set()


def opened(server):
    """Return a new session of a server, and its owner's end."""
    ours, theirs = socket.socketpair()
    session = OwnerSession(theirs)
    server.sessions.add(session)
    server.selector.register(theirs, selectors.EVENT_READ, lambda: None)
    return session, ours


def test_an_owner_that_is_gone_when_it_is_told_something_leaves_nothing_registered():
    server = Alone()
    session, owner = opened(server)
    owner.close()
    session.tell(ended=0, status=0)
    assert session.closing
    number = session.sock.fileno()
    server._close(session)
    assert not server.sessions and not server.selector.get_map()
    again, owner = opened(server)  # with the same number, which was said to be taken
    assert again.sock.fileno() == number
    owner.close()
    again.sock.close()
    server.selector.close()
