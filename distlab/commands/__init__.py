"""The subcommands of `distlab`, one file each; `__main__` puts them together."""

from distlab.optional_imports import leave_out_grammars

leave_out_grammars()
