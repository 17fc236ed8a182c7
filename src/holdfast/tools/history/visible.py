"""Whether the model has an entry before it as it came: then there is no need to look it up."""

from holdfast.view import View
from holdfast.view.items import Round


def is_shown(view: View, n: int) -> bool:
    """Say whether a view shows entry `n` whole: not cleared, spilled, collapsed or gone."""
    item = view.item_of(n)
    if not isinstance(item, Round):
        return item is not None
    result = next((result for result in item.results if result.id == n), None)
    return result is None or result.stand_in("seen") is None
