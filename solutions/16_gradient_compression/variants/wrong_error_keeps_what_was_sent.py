"""Adds gradients to the error, and takes away nothing."""

POINTS = 3.0
HINT = "what was sent is in it no longer"
REPLACE = {
    "(whole - sent[comm.rank]).split(": "whole.split(",
}
