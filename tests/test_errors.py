"""The tree of exceptions matches the one in its module."""

import re

import longhold.errors as errors
from longhold.errors import LongholdError

LINE = re.compile(r"^ {4}((?:[│ ] {3})*)(?:[├└]─ )?([A-Z]\w+)(?: \((\w+)\))?", re.MULTILINE)
"""How deep, the name, and the built-in exception it also is."""


def drawn():
    """Yield each name in the drawing with its parents."""
    path = []
    for depth, name, also in LINE.findall(errors.__doc__):
        level = len(depth) // 4 + 1 if path else 0
        path = [*path[:level], name]
        yield name, {path[-2] if level else "Exception", *filter(None, [also])}


def defined():
    """Yield each class with its bases."""
    kinds = [LongholdError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__ == errors.__name__:
            yield kind.__name__, {base.__name__ for base in kind.__bases__}


def test_the_drawn_tree_is_the_one_that_is_raised():
    assert dict(drawn()) == dict(defined())
    assert len(list(drawn())) == len(dict(drawn()))
