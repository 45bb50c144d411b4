"""Counts the rungs by a logarithm, which is a little too small for 1000 and 10."""

POINTS = 0.0
HINT = "counted in whole numbers"
REPLACE = {
    (
        "        rungs = [least]\n"
        "        while rungs[-1] * eta <= most:\n"
        "            rungs.append(rungs[-1] * eta)\n"
        "        return rungs"
    ): (
        "        count = int(math.log(most / least, eta))\n"
        "        return [least * eta**power for power in range(count + 1)]"
    ),
}
