"""What is said for tool calls that a dead process left open. Pure.

No call is ever run again. That a tool never began is only said where beginnings are recorded, as
an agent's loop does; a program may record them or not.
"""

from collections.abc import Iterator

from holdfast.log.entries import Began, Imported, Ran
from holdfast.view import View

NOT_RUN = "The tool was not run: the session ended before it began."
MAY_HAVE_RUN = (
    "No result was recorded: the session ended. The tool may have run, fully or in part; "
    "check what it did before calling it again."
)
INTERRUPTED = (
    "No result was recorded: the session ended while the tool ran. It may have done all of its work, "
    "or part of it; check that before calling it again."
)
_INTERRUPTED_BEFORE = (
    "The tool was interrupted: the session ended while it ran. It was not run again."
)
"""In logs of 0.1.0."""
REPAIRS = (NOT_RUN, MAY_HAVE_RUN, INTERRUPTED, _INTERRUPTED_BEFORE)


def plan_repair(view: View) -> Iterator[Ran]:
    """Yield a result for every call that has none."""
    last = view.open_round()
    if last is None:
        return
    began = {use.id for use in view.interrupted()}
    unknown = NOT_RUN if records_beginnings(view) else MAY_HAVE_RUN
    for use in last.missing():
        text = INTERRUPTED if use.id in began else unknown
        yield Ran(tool_use_id=use.id, content=text, is_error=True)


def records_beginnings(view: View) -> bool:
    """Return whether whoever runs the tools says so each time."""
    begun, ran, is_ours = set[str](), set[str](), view.configured is None
    for entry in view.history:
        match entry:
            case Began(tool_use_id=id):
                begun.add(id)
            case Ran(tool_use_id=id, content=content) if content not in REPAIRS:
                ran.add(id)
            case Imported():
                is_ours = False
    return ran <= begun and (is_ours or bool(begun))
