"""Figures: one file for each picture of a run, a job, a history or a model."""
