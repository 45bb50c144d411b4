"""Takes the best of the measurements for the peak."""

POINTS = 7.0
HINT = "The peak follows from them alone"
REPLACE = {
    "return sigma, kappa, peak": "return sigma, kappa, n[throughput.argmax()].item()"
}
