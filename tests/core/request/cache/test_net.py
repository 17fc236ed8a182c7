"""In all tests, a prefix that changes without an announcement is an error."""

import pytest
from msgspec import structs

from longhold.core.log.entries import Replied, Section
from longhold.core.messages import Text, Usage
from longhold.core.turn.engine import Engine
from longhold.errors import PrefixMoved
from longhold.session.session import Session


async def _two_calls(session: Session, between) -> None:
    session.user("one")
    await session.prepare()
    reply = Replied(
        response_id="r", content=(Text(text="yes"),), usage=Usage(input_tokens=10, output_tokens=1)
    )
    session._engine.record(reply)
    session._engine.finish_turn()
    session.user("two")
    between(session._engine)
    await session.prepare()


def _opened(tmp_path) -> Session:
    rules = Section(name="rules", text="be kind")
    return Session.open(model="claude-sonnet-5-5", system=(rules,), directory=tmp_path)


async def test_a_frame_that_is_changed_behind_the_log_is_caught(tmp_path):
    def sly(engine: Engine) -> None:
        other = (Section(name="rules", text="be quick"),)
        engine.view.frame = structs.replace(engine.frame, sections=other)

    with _opened(tmp_path) as session, pytest.raises(PrefixMoved, match="section rules changed"):
        await _two_calls(session, sly)


async def test_a_frame_that_an_entry_declares_may_move(tmp_path):
    def open_handed(engine: Engine) -> None:
        other = (Section(name="rules", text="be quick"),)
        engine.record(structs.replace(engine.frame, n=0, at=0.0, sections=other))

    with _opened(tmp_path) as session:
        await _two_calls(session, open_handed)
