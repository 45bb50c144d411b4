"""Every rank sends first and receives second."""

POINTS = 0.0
HINT = "all ranks cannot send first"
REPLACE = {
    "target += comm.sendrecv(chunks[(place - step) % n], arrived, **neighbors)": (
        'comm.send(chunks[(place - step) % n], neighbors["dst"])\n'
        '        target += comm.recv(arrived, neighbors["src"])'
    )
}
