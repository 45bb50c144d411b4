"""Links between servers: loopback listeners that forward bytes, or hold them back.

    member 1 ──▶ listener for member 0 ──▶ member 0's own socket
             ◀──                       ◀──

A server never listens on a port: it has a Unix socket in a private folder, and the
other members reach it by a listener, whose port the system has chosen. So no port can
be in use already. While two members are on different sides of a partition the listener
holds back their bytes, in both directions, as a broken network does: neither gets an
error, and no connection is refused. When the network heals, the bytes arrive, late.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Links"]

_PIECE_BYTES = 65536
_PIECES = 64  # in flight at once; then the sender has to wait, as with a full socket
# etcd's members put their ids in each request.
_WHO = re.compile(rb"X-Server-From: ([0-9a-f]+)", re.IGNORECASE)


@dataclass
class _Link:
    """One connection: its dialer, as far as that is known, and its target."""

    dialer: int | None
    target: int
    said: str | None = None


class Links:
    """All listeners, and the reachability and delays between members.

    Invariant: a connection whose dialer is not known passes nothing during a split.
    """

    def __init__(self):
        self._servers = []
        self._side = {}  # member -> number of its side; empty without a split
        self._delay_s = {}
        self._named = {}
        self._changed = asyncio.Event()

    async def open(self, path: str, target: int, dialer: int | None) -> int:
        """Open a listener for the socket at `path`; return its port.

        dialer: the member that will use it; None if its requests are to name it.
        """

        async def serve(reader, writer):
            await self._serve(reader, writer, path, _Link(dialer, target))

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(server)
        return server.sockets[0].getsockname()[1]

    def split(self, sides: Iterable[Iterable[int]]) -> None:
        """Hold back all bytes between members on different sides; no sides: heal."""
        self._side = {member: n for n, side in enumerate(sides) for member in side}
        self._change()

    def delay(self, member: int, delay_s: float) -> None:
        """Delay all bytes to and from a member by `delay_s`."""
        self._delay_s[member] = delay_s

    def name(self, named: Mapping[str, int]) -> None:
        """Set the map from the members' own ids to their numbers."""
        self._named = dict(named)
        self._change()

    def _change(self):
        self._changed.set()
        self._changed = asyncio.Event()

    def _dialer(self, link):
        return self._named.get(link.said) if link.dialer is None else link.dialer

    def _joined(self, link):
        dialer = self._dialer(link)
        if not self._side:
            return True
        return dialer is not None and self._side[dialer] == self._side[link.target]

    async def _until_joined(self, link):
        while not self._joined(link):
            await self._changed.wait()

    async def _serve(self, reader, writer, path, link):
        """Forward the bytes of one connection, up to its end."""
        ends = [writer]
        try:
            first = b""
            if link.dialer is None:
                first = await reader.read(_PIECE_BYTES)
                _find_out(link, first)
            await self._until_joined(link)
            theirs, to_them = await asyncio.open_unix_connection(path)
            ends.append(to_them)
            to_them.write(first)
            there, back = asyncio.Queue(_PIECES), asyncio.Queue(_PIECES)
            await _together(
                self._take(reader, there, link, sent_by_dialer=True),
                self._deliver(there, to_them, link),
                self._take(theirs, back, link, sent_by_dialer=False),
                self._deliver(back, writer, link),
            )
        except OSError:  # one of the two has closed, or did not exist
            for end in ends:
                end.transport.abort()
        finally:
            for end in ends:
                end.close()

    async def _take(self, reader, pieces, link, *, sent_by_dialer):
        """Queue the bytes from `reader` with their due times; b"" marks its end."""
        clock = asyncio.get_running_loop().time
        piece = None
        while piece != b"":
            try:
                piece = await reader.read(_PIECE_BYTES)
            except OSError:
                piece = b""
            if sent_by_dialer:
                _find_out(link, piece)
            both = self._dialer(link), link.target
            delay_s = max(self._delay_s.get(member, 0) for member in both)
            await pieces.put((clock() + delay_s, piece))

    async def _deliver(self, pieces, writer, link):
        """Send each piece once it is due and no partition separates the members."""
        clock = asyncio.get_running_loop().time
        piece = None
        while piece != b"":
            due, piece = await pieces.get()
            if due > clock():
                await asyncio.sleep(due - clock())
            await self._until_joined(link)
            writer.write(piece)
            await writer.drain()
        writer.write_eof()


async def _together(*parts):
    """Wait for all coroutines; cancel the others when one raises."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _find_out(link, piece):
    if link.dialer is None and (found := _WHO.search(piece)):
        link.said = found[1].decode()
