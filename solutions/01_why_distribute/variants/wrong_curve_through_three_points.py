"""Fits the first measurement, the last one and one between: exact, if they are."""

POINTS = 7.0
HINT = "Do all of the points take part"
REPLACE = {"np.array(measured,": "np.array([measured[i] for i in (0, len(measured) // 2, -1)],"}
