"""Mock interviews: chains of cards, a question with numbers, and live coding.

from distlab import interview

interview(level="senior", minutes=45)     # as last line of a cell

draw ──▶ record ──▶ page, in a cell and on the site
  │         └─────▶ `distlab interview`
  └── cards of the quiz, whiteboard, live_coding
"""

from distlab.learner.interview.page import interview, interview_page

__all__ = ["interview", "interview_page"]
