"""Tests of pages: a package, so that its files in a row share one browser."""
