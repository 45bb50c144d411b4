"""What `distlab prove` and CI do: grade answers whose points and hint are known.

    solutions/STEM/variants/*.py ──▶ read_variants ──▶ a notebook each ─┐
    solutions/STEM/STEM.ipynb ──────────────────────────────────────────┼─▶ graded
    the exercise, untouched ────────────────────────────────────────────┘      │
                                 Proof, a table of rows  ◀── prove_exercise ◀──┘

`graded` hands them to the desk of `distlab grade`: there is no other way of grading.
"""

from distlab.commands.proving.course import Graded, graded
from distlab.commands.proving.proof import Proof, Row, prove_exercise
from distlab.commands.proving.variants import Variant, read_variants

__all__ = [
    "Graded",
    "Proof",
    "Row",
    "Variant",
    "graded",
    "prove_exercise",
    "read_variants",
]
