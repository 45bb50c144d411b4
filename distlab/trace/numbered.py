"""Numbered messages, as nodes send: delayed, dropped, duplicated, reordered.

node 0   ──1──╲ ╱──2──▶            messages 1 and 2 are reordered
node 1   ◀──2──╳──1──▶ 1 again     message 1 arrives twice
"""

from collections import defaultdict

from distlab.trace.event import Event, Message

__all__ = ["is_lost", "pair_numbered", "rounds_of_numbered", "words_of"]

_LOST = "dropped"


def is_lost(event: Event) -> bool:
    """Return True if an event is a send that the network dropped."""
    return event.kind == "send" and event.label.partition(":")[0] == _LOST


def words_of(message: Message) -> str:
    """Return a message in words, from the label of either end."""
    for event in message:
        if event is not None and event.label:
            words = event.label
            return words.partition(":")[2].strip() if is_lost(event) else words
    return ""


def pair_numbered(events: list[Event]) -> list[Message]:
    """Return every message, each send beside the recv that has its number.

    A send that arrived twice is in two messages; one that never arrived, because it was
    lost or because its receiver was dead, has no recv.
    """
    sends, recvs = defaultdict(list), defaultdict(list)
    for event in events:
        if event.kind == "send":
            sends[event.rank, event.peer, event.step].append(event)
        elif event.kind == "recv":
            recvs[event.peer, event.rank, event.step].append(event)
    met = []
    for number in sends.keys() | recvs.keys():
        out, into = sends[number], recvs[number]
        for k in range(max(len(out), len(into))):
            send = out[min(k, len(out) - 1)] if out else None
            met.append(Message(send, into[k] if k < len(into) else None))
    order = {id(event): place for place, event in enumerate(events)}
    return sorted(met, key=lambda m: [order[id(event)] for event in m if event])


def rounds_of_numbered(
    events: list[Event], messages: list[Message]
) -> list[tuple[Message, int]]:
    """Return each message with its round: one more than its sender's latest received.

    A node does not wait for what it sends, so a round is a delay of the network: a
    write that waits for two acknowledgements takes two rounds, however they arrive.
    """
    sender_of = {id(m.recv): id(m.send) for m in messages if m.recv and m.send}
    reached, rounds = defaultdict(int), {}
    for event in events:
        if event.kind == "send":
            rounds[id(event)] = reached[event.rank] + 1
        elif event.kind == "recv":
            own = rounds.get(sender_of.get(id(event)), 1)
            rounds[id(event)] = own
            reached[event.rank] = max(reached[event.rank], own)
    return [(m, rounds[id(m.send or m.recv)]) for m in messages]
