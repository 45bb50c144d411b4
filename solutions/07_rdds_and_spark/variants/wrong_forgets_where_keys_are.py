"""Does not say that keys stay where they are."""

POINTS = 9.0
HINT = "what else can mapPartitions be told"
REPLACE = {
    ", preservesPartitioning=True": "",
}
