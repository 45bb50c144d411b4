"""A learner's predictions, quiz cards and progress."""
