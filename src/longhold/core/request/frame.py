"""The frame of a session, which a resumed session sends again byte for byte."""

from collections.abc import Iterable, Sequence

from msgspec import structs

from longhold.core.log.entries import Framed, Section
from longhold.core.messages import JsonObject
from longhold.core.messages.measure import measure_json, measure_text
from longhold.core.request.server_side import update_excluded
from longhold.core.request.tool_references import is_deferred


def frame(
    system: str | Sequence[Section], tools: Iterable[JsonObject], options: JsonObject
) -> Framed:
    listed = (Section(name="system", text=system),) if isinstance(system, str) else tuple(system)
    kept = tuple(section for section in listed if section.text.strip())
    return weigh_frame(Framed(sections=kept, tools=tuple(tools), options=options))


def replace_tools(frame: Framed, tools: tuple[JsonObject, ...]) -> Framed:
    return weigh_frame(update_excluded(structs.replace(frame, tools=tools)))


def weigh_frame(frame: Framed) -> Framed:
    """Measure the tokens that a frame adds to every request. Return it as an unwritten entry."""
    prompt = measure_text("\n".join(section.text for section in frame.sections))
    texts = prompt + measure_text(frame.instructions)
    listed = (tool for tool in frame.tools if not is_deferred(tool))
    return structs.replace(frame, n=0, at=0.0, measure=sum(map(measure_json, listed), texts))
