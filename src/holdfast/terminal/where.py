"""Where a session stands, for someone who comes back to it: from its notes."""

from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.stages.notes.pages import shown, where_you_were

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent


def where_lines(agent: "Agent") -> list[str]:
    """Return a few lines from the notes, under a heading; none if there are none."""
    try:
        file = agent.session.layers.notes.file(agent.engine)
        page = shown(file, agent.session.view.history, agent.engine.settings.notes)
    except HoldfastError:
        return []  # unreadable notes do not prevent resuming
    lines = where_you_were(page)
    return ["Where you were:", *lines] if lines else []
