"""The subcommands of `distlab`, one file each; `distlab.__main__` puts them together."""
