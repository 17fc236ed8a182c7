"""A loop with one harmless tool, in which waiting before a retry takes no time."""

import asyncio
from pathlib import Path

from longhold.core.log.spending import Budget
from longhold.core.models.protocol import Model
from longhold.core.models.steady import Patience
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool
from longhold.core.turn.answering import Models
from longhold.core.turn.loop import Loop
from longhold.core.turn.round import Toolbox
from longhold.session.session import Session


async def _look(given: dict, tool_context: ToolContext) -> Outcome:
    return Outcome(content=f"saw {given['at']}")


LOOK = Tool(
    name="Look",
    description="looks",
    input_schema={"type": "object", "properties": {"at": {"type": "string"}}},
    kind="read",
    path_inputs=(),
    command_input="",
    is_read_only=lambda _: True,
    limit_chars=None,
    run=_look,
)


async def _no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


def probing_loop(
    session: Session, model: Model, place: Path, patience: Patience, tool: Tool = LOOK
) -> Loop:
    return Loop(
        engine=session._engine,
        models=Models(model),
        stages=session._layers.stages,
        after_turn=session._layers.after_turn,
        toolbox=Toolbox(
            tools={tool.name: tool},
            tool_context=ToolContext(root=place, home=place, scratch=place),
        ),
        settings=session._engine.settings.loop,
        budget=Budget(session._engine.settings.budget),
        patience=patience,
        sleep=_no_wait,
    )
