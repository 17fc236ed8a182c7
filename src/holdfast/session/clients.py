"""A program's client behind a session: checked at once, asked on forks of the conversation."""

from functools import partial

from holdfast.models.clients import model_over
from holdfast.session.own_tools import context_over
from holdfast.turn.engine import Engine
from holdfast.turn.fork import Forks, out_of_reach
from holdfast.turn.own_calls import own_refusal
from holdfast.turn.round import Toolbox


def check_client(client: object) -> None:
    """Raise at once, before anything is made, if a client cannot be used."""
    if client is not None:
        model_over(client, "")


def forks_over(engine: Engine, client: object) -> Forks:
    """Let questions to the model pass through the caller's client, on forks without tools."""
    context = context_over(engine)
    return Forks(
        parent=engine,
        model=lambda: model_over(client, engine.model),
        toolbox=lambda: Toolbox(tools=out_of_reach(engine.frame), tool_context=context),
        refuses=partial(own_refusal, engine),
    )
