"""What code that is not trusted runs in: one bubblewrap, and forks of it."""
