"""Names of a notebook's things, which mean the things themselves in its forks."""

__all__ = ["Named", "notebook"]


class _Notebook:
    """What the cells of this process have defined: set once, by the notebook itself.

    space: its names. broken: name -> what the cell that should define it ended with.
    """

    def __init__(self):
        self.space, self.broken = {}, {}


notebook = _Notebook()


class Named:
    """A thing of a submission, outside of it: it can only be passed on.

    name: what the submission calls it.
    """

    def __init__(self, name: str):
        self.name = self.__name__ = name

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return _thing, (self.name,)


def _thing(name):
    """Return what the notebook has under a name; called where a `Named` arrives."""
    if name in notebook.space:
        return notebook.space[name]
    why = notebook.broken.get(name)
    raise NameError(
        f"{name!r} is not defined" + (f": its cell ended early ({why})" if why else "")
    )
