"""Whether what came back from a rank looks like what its probe returns."""

__all__ = ["is_like"]

_INFINITE = 2**1000  # an int that large is no number to a float


def is_like(value: object, shape: object) -> bool:
    """Return whether plain data has a shape.

    shape: a type, where float also means an int of its size; [shape] for a list of any
    length, or [shape, length]; (shape, shape) for one of several; a dict with a shape
    for each key; None for None. A type means exactly this one: True is no int.
    """
    if isinstance(shape, dict):
        return (
            type(value) is dict
            and value.keys() == shape.keys()
            and all(is_like(value[key], each) for key, each in shape.items())
        )
    if isinstance(shape, list):
        each, *length = shape
        return (
            type(value) is list
            and (not length or len(value) == length[0])
            and all(is_like(item, each) for item in value)
        )
    if isinstance(shape, tuple):
        return any(is_like(value, each) for each in shape)
    if shape is None:
        return value is None
    if shape is float and type(value) is int:
        return abs(value) < _INFINITE
    return type(value) is shape
