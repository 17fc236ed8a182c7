"""Longhold by the same measures: time per turn through the public session, and what is kept."""

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import longhold
from longhold.core.log.entries import Compacted, Ran, Replied, Said
from longhold.core.messages import Text, ToolUse, Usage, message_to_wire
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.settings import Settings, WindowSettings
from longhold.core.stages.compact.owner import CompactionHooks
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.view import fold
from longhold.insight.replay.policies import POLICIES
from longhold.insight.replay.recorded_session import RecordedSession
from longhold.insight.replay.session_replay import ReplayStages, SessionReplay, standard_stages
from peering.play import TURNS, Played, count, small_turn, texts
from retention import Segment, measure, told

MODEL = "claude-opus-4-6"
ROOM_TOKENS = 50_000_000
"""So much that nothing is due, as for the others."""
TURN_TOKENS = 160
"""About what `small_turn` has."""


def ms_per_turn(messages: int) -> float:
    return asyncio.run(_ms_per_turn(messages))


async def _ms_per_turn(messages: int) -> float:
    """Give the median of a whole turn: the result taken, the request made, the answer settled.

    The answer is in our own type, as messages are in theirs for the others.
    """
    with tempfile.TemporaryDirectory() as name:
        settings = Settings(window=WindowSettings(limit_tokens=ROOM_TOKENS, auto_line=""))
        session = longhold.Session.open(
            model=MODEL, directory=Path(name), system="A test.", settings=settings
        )
        session.user("Do the work.")
        times = []
        for number in range(messages // 2 + TURNS):
            call, result = small_turn(number)
            use = call["tool_calls"][0]
            given = json.loads(use["function"]["arguments"])
            answer = Reply(
                response_id=f"msg_{number}",
                model=MODEL,
                content=(
                    Text(text=call["content"]),
                    ToolUse(id=use["id"], name="Read", input=given),
                ),
                stop_reason="tool_use",
                usage=Usage(
                    input_tokens=10,
                    output_tokens=50,
                    cache_read_tokens=2_000 + TURN_TOKENS * number,
                ),
            )
            began = time.process_time()
            await session.prepare()
            await session.record(answer)
            session.tool_result(use["id"], result["content"])
            times.append((time.process_time() - began) * 1_000)
            await asyncio.sleep(0)
        session.close()
    return round(statistics.median(times[-TURNS:]), 3)


def kept_by_ours(recording: RecordedSession, window_tokens: int) -> Played:
    """Score the view after the first compaction against all that had been said."""
    found = Played()

    def build(
        engine: Engine, spill: Spill, ask: AskFork, hooks: CompactionHooks, background: Background
    ) -> ReplayStages:
        built = standard_stages(engine, spill, ask, hooks, background)

        async def compact_and_look(engine: Engine) -> None:
            made = len(engine.view.history)
            await built.stages[-1](engine)
            new = engine.view.history[made:]
            if found.tokens_share is None and any(isinstance(one, Compacted) for one in new):
                _score(engine, found)

        return ReplayStages(
            stages=(*built.stages[:-1], compact_and_look),
            after_turn=built.after_turn,
            close=built.close,
        )

    settings: Settings = POLICIES["ours"].settings(recording.lifetime, window_tokens)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "log.jsonl"
        replay = SessionReplay(recording, settings, recording.model, place, build=build)
        asyncio.run(replay.play())
    return found


def _score(engine: Engine, found: Played) -> None:
    history = [e for e in engine.view.history if isinstance(e, Said | Replied | Ran)]
    items = list(fold(history).items)
    segment = Segment("", history, items, "", sum(count(told(item)) for item in items))
    messages = engine.view.messages()
    text = texts([message_to_wire(message) for message in messages])
    found.scores = measure(text, segment, count, True)
    found.tokens_share = round(count(text) / max(1, segment.tokens), 4)
    found.rule_violations += len(violations(messages))
