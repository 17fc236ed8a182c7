"""What opening a session needs: a client that can be used, forks over it, the newest session here."""

from pathlib import Path

from holdfast.errors import SessionNotFound
from holdfast.log.store import Store
from holdfast.models.clients import model_over
from holdfast.session.own_tools import context_over
from holdfast.turn.engine import Engine
from holdfast.turn.fork import Forks, out_of_reach
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
    )


def newest_in(store: Store, directory: Path) -> str:
    """Return the newest session of a directory, never another's."""
    here = store.sessions(directory)
    if not here:
        raise SessionNotFound(f"{directory} has no session; give the id of one")
    return here[0].id
