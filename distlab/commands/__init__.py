"""The subcommands of `distlab`, one file each; `__main__` puts them together."""
