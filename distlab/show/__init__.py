"""Pictures of what ranks did, drawn from the trace of a run.

    from distlab.show import scaling, steps, timeline

    timeline(report)            # who did what when, and who waited for whom
    steps(report)               # who sent to whom in which round, and how many bytes
    scaling(measured, ...)      # measured points against predicted lines
    source(function)            # the code itself

Each drawing is a `Picture`: as the last line of a cell it shows itself, and its `alt`
says in words and numbers what is to be seen. Importing this package is light;
matplotlib loads with the first picture.
"""

from distlab.show.picture import Picture
from distlab.show.scaling import scaling
from distlab.show.source import source
from distlab.show.steps import steps
from distlab.show.timeline import timeline

__all__ = ["Picture", "scaling", "source", "steps", "timeline"]
