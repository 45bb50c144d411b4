"""What the ranks of checks use, imported once, before they are forked.

Nobody else imports it: it loads torch.
"""

import torch  # noqa: F401

from distlab import collectives
from distlab.grading import probes  # noqa: F401

for _name in collectives.__all__:
    getattr(collectives, _name)  # each is imported when it is first asked for
