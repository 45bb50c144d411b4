"""Checks of exercise 06: MapReduce jobs, on files and clusters of many shapes."""
