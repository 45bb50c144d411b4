"""Training scripts made from the cells of a lesson."""
