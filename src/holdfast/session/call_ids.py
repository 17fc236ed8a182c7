"""Ids of tool calls that a server used before: some number the calls of every answer from zero.

A view tells calls apart by their ids, so a repeated one gets a suffix, and a result that names it
belongs to the open call it was given to.
"""

from collections.abc import Iterable

from msgspec import structs

from holdfast.messages import Block, Content, ToolUse
from holdfast.view import View

SEPARATOR = "--"
"""Allowed in ids by every provider, and hardly ever found in them."""


def with_own_ids(content: Iterable[Block], view: View) -> Content:
    """Give a new id to every call whose id another call in the view has."""
    taken: set[str] = set()
    blocks: list[Block] = []
    for block in content:
        if isinstance(block, ToolUse):
            id, number = block.id, 1
            while id in taken or view.round_of(id) is not None:
                number += 1
                id = f"{block.id or 'call'}{SEPARATOR}{number}"
            taken.add(id)
            block = block if id == block.id else structs.replace(block, id=id)
        blocks.append(block)
    return tuple(blocks)


def own_id(id: str, view: View) -> str:
    """Return the id under which an open call with this id is in the view."""
    last = view.open_round()
    open_ids = [use.id for use in last.missing()] if last else []
    if id in open_ids:
        return id
    return next((one for one in open_ids if given_id(one) == id), id)


def given_id(id: str) -> str:
    """Return the id as the server gave it."""
    return id.rpartition(SEPARATOR)[0] or id
