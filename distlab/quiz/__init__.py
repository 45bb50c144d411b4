"""Interview cards: questions about a lesson, with the key points of a good answer.

    from distlab.quiz import ask

    ask(10)                     # as last line of a cell: answer, then compare
    ask(10, level="senior")
    review()                    # today's cards of all lessons, one at a time

The cards of a lesson are in a text file of its name in this folder, in a format that
`distlab.quiz.card` describes.
"""

from distlab.quiz.card import Card
from distlab.quiz.deck import Deck, ask
from distlab.quiz.page import anki, review_page
from distlab.quiz.review import review
from distlab.quiz.shelf import cards

__all__ = ["Card", "Deck", "anki", "ask", "cards", "review", "review_page"]
