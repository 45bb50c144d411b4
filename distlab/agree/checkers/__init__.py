"""Checkers: does any order of a history's operations explain every answer?"""
