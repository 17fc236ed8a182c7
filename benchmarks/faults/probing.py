"""A loop with one harmless tool, for models that fail: waiting takes no time."""

import asyncio
from pathlib import Path

from holdfast.log.spending import Budget
from holdfast.models.protocol import Model
from holdfast.models.steady import Patience
from holdfast.session import Session
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Outcome, Tool
from holdfast.turn.loop import Loop
from holdfast.turn.models import Models
from holdfast.turn.round import Toolbox


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


def probing_loop(session: Session, model: Model, place: Path, patience: Patience) -> Loop:
    return Loop(
        engine=session.engine,
        models=Models(model),
        stages=session.layers.stages,
        after_turn=session.layers.after_turn,
        toolbox=Toolbox(
            tools={LOOK.name: LOOK},
            tool_context=ToolContext(root=place, home=place, scratch=place),
        ),
        settings=session.engine.settings.loop,
        budget=Budget(session.engine.settings.budget),
        patience=patience,
        sleep=_no_wait,
    )
