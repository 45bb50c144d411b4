"""Interview cards: questions about a lesson, with a good answer and its key points.

    from distlab.learner.quiz import ask

    ask(10)                     # as last line of a cell: answer, then compare
    ask(10, level="senior")
    review()                    # today's cards of all lessons, one at a time

The cards of a lesson are in a text file of its name in this folder, in a format that
`distlab.learner.quiz.card` describes.
"""

from distlab.learner.quiz.card import Card, cards
from distlab.learner.quiz.deck import Deck, ask, review
from distlab.learner.quiz.page import anki, review_page

__all__ = ["Card", "Deck", "anki", "ask", "cards", "review", "review_page"]
