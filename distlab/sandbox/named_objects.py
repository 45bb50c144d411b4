"""Names of a notebook's objects, which its forks resolve to the objects themselves."""

__all__ = ["Named", "notebook"]


class _Notebook:
    """The definitions of this process's cells: set once, by the notebook itself.

    space: its namespace. broken: name -> the error of the cell that should define it.
    """

    def __init__(self):
        self.space, self.broken = {}, {}


notebook = _Notebook()


class Named:
    """A reference by name to a submission's object: outside it can only be passed on.

    name: the object's name in the submission.
    """

    def __init__(self, name: str):
        self.name = self.__name__ = name

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return _thing, (self.name,)


def _thing(name):
    """Return the notebook's object of a name; called where a `Named` is unpickled."""
    if name in notebook.space:
        return notebook.space[name]
    why = notebook.broken.get(name)
    raise NameError(
        f"{name!r} is not defined" + (f": its cell ended early ({why})" if why else "")
    )
