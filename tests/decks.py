"""Cards for the tests of the quiz."""

from distlab.learner.quiz import Card

HOSTILE = "</details><script>document.title='got in'</script><b>\"&"


def card(number, **fields):
    usual = {
        "id": f"card-{number}",
        "level": "mid",
        "topic": "rings",
        "question": f"What is {number}?",
        "answer": "An answer.",
        "key_points": ("first", "second", "third"),
        "cell": "the-cell",
        "lesson": "10_ring",
    }
    return Card(**{**usual, **fields})


def html(deck):
    return deck._repr_mimebundle_()["text/html"]
