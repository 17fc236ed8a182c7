"""The turns of a generated session, and what happens between their rounds.

Records are yielded in file order. Each turn is a user message, some rounds of tool calls and a
last answer; compactions, clearings and pictures are spread over the file and happen between
rounds.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec

from generated_sessions import phrases
from generated_sessions.answers import Answers
from generated_sessions.calls import Json
from generated_sessions.world import World

Happening = Literal["compact", "clear", "picture"]

ROUNDS = (3.4, 1.1, 45)
"""Median, spread and most rounds of a turn; near seven on average."""
PAUSE_SECONDS = (50.0, 1.4, 6 * 3600)
"""Median, spread and most seconds before the user speaks; some outlive the prompt cache."""
RESUMED_SHARE = 0.3
"""Of sessions that continue another file and begin with a parent that is not in this one."""
COMMAND_SHARE, OVERLOADED_SHARE, INTERRUPTED_SHARE = 0.06, 0.05, 0.04
"""Of turns with a slash command, with a refusing provider, and cut short by the user."""
TIMED_SHARE = 0.56
"""Of turns whose duration is noted."""
RESTORED_TOKENS = (3_000, 12_000)
"""Files and tools brought back after a compaction; the transcript does not show them."""
KEPT_RESULTS = 3
"""Results that a clearing leaves alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    seed: int
    records: int
    model: str
    compactions: int = 0
    clearings: int = 0
    pictures: int = 0
    is_sidechain: bool = False
    scale: float = 1.0
    """Of files and results."""
    line_tokens: int | None = None
    """Compact whenever the prompt passes this."""


class SessionTurns:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._world = World.build(
            recipe.seed, model=recipe.model, is_sidechain=recipe.is_sidechain, scale=recipe.scale
        )
        self._answers = Answers(self._world)
        self._schedule = _spread(recipe)
        self._is_picture_due = False
        self._is_closing = False

    def run(self) -> Iterator[Json]:
        world = self._world
        self._open()
        text = (
            phrases.instructions(world.project)
            if world.is_sidechain
            else phrases.first_message(world.project)
        )
        while True:
            self._user_speaks(text)
            for _ in self._turn():
                yield from world.writer.drain()
            if self._is_over():
                return
            text = phrases.user_message(world.project, world.balance.appetite("user"))

    def close(self) -> None:
        """End the session with the current round."""
        self._is_closing = True

    def _is_over(self) -> bool:
        is_full = self._is_closing or self._world.writer.written >= self._recipe.records
        return is_full and not self._schedule and not self._is_picture_due

    def _open(self) -> None:
        world, writer = self._world, self._world.writer
        if world.is_sidechain:
            return
        if world.chance.odds(RESUMED_SHARE):
            leaf = world.chance.uuid()
            writer.resume(phrases.title(world.project), leaf)
            writer.stop_hooks()
        elif self._answers.has_hooks:
            writer.hook_progress("SessionStart:startup", world.chance.uuid())

    def _turn(self) -> Iterator[None]:
        """Generate one turn; yields after each round so that records can be written early."""
        rounds = self._world.chance.length(*ROUNDS)
        began = self._world.writer.seconds
        done, is_first = 0, True
        while not self._is_over() and (done < rounds or self._world.is_sidechain):
            calls = [self._world.tools.look()] if self._is_picture_due else None
            self._is_picture_due = False
            self._answers.call_tools(is_first=is_first, calls=calls)
            is_first = self._happen()
            done += 1
            yield
        self._answers.conclude(is_first=is_first)
        if not self._world.is_sidechain:
            self._after_turn(began)
        yield

    def _user_speaks(self, text: str) -> None:
        world, chance = self._world, self._world.chance
        if world.is_sidechain:
            world.say(text)
            return
        world.writer.wait(chance.length(*PAUSE_SECONDS))
        world.writer.snapshot()
        if chance.odds(COMMAND_SHARE):
            self._slash_command()
        if self._is_picture_due and chance.odds(0.5):
            self._is_picture_due = False
            world.show_picture(text)
        else:
            world.say(text)
        if chance.odds(OVERLOADED_SHARE):
            self._overloaded()

    def _after_turn(self, began: float) -> None:
        """Write the agent's records at the end of a turn, unless the user interrupted it."""
        world, writer = self._world, self._world.writer
        if world.chance.odds(INTERRUPTED_SHARE):
            writer.user([{"type": "text", "text": "[Request interrupted by user]"}])
            return
        if self._answers.has_hooks:
            writer.hook_progress("Stop", world.chance.uuid())
        writer.stop_hooks()
        if world.chance.odds(TIMED_SHARE):
            writer.system(
                "turn_duration", durationMs=int((writer.seconds - began) * 1000), isMeta=False
            )

    def _slash_command(self) -> None:
        world = self._world
        if world.chance.odds(0.5):
            caveat = (
                "<local-command-caveat>Run by the user, not meant for you.</local-command-caveat>"
            )
            world.say_meta(caveat, caveat)
            world.say("<command-name>/status</command-name>\n<command-args></command-args>")
            text = (
                f"<local-command-stdout>Session {world.writer.session[:8]}</local-command-stdout>"
            )
            world.writer.system("local_command", content=text, level="info", isMeta=False)
        else:
            world.say("<command-name>/review</command-name>\n<command-args></command-args>")
            text = phrases.instructions(world.project)
            world.say_meta([{"type": "text", "text": text}], text)

    def _overloaded(self) -> None:
        world, chance = self._world, self._world.chance
        request = chance.token("req_011C", 20)
        error: Json = {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
            "request_id": request,
        }
        for attempt in range(1, chance.between(2, 5)):
            world.writer.wait(attempt * 2.5)
            world.writer.system(
                "api_error",
                level="error",
                error={"status": 529, "requestID": request, "error": error},
                retryInMs=round(500 * 2**attempt * chance.uniform(0.9, 1.1), 3),
                retryAttempt=attempt,
                maxRetries=10,
            )
        if chance.odds(0.3):
            world.writer.synthetic(f"API Error: 529 {msgspec.json.encode(error).decode()}")
            world.say("continue")

    def _happen(self) -> bool:
        """Do what is due after this round; return whether the history was replaced."""
        line = self._recipe.line_tokens
        was_compacted = line is not None and self._world.meter.size >= line
        if was_compacted:
            self._compact()
        while self._schedule and self._schedule[0][0] <= self._world.writer.written:
            match self._schedule[0][1]:
                case "compact":
                    self._compact()
                    was_compacted = True
                case "clear" if not self._clear():
                    break
                case "picture" if self._is_picture_due:
                    break
                case "picture":
                    self._is_picture_due = True
                case "clear":
                    pass
                case kind:
                    assert_never(kind)
            self._schedule.popleft()
        return was_compacted

    def _compact(self) -> None:
        world = self._world
        text = phrases.summary(world.project)
        world.writer.wait(world.chance.uniform(20.0, 60.0))
        world.writer.boundary(trigger="auto", preTokens=world.meter.size)
        world.writer.user(text, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        world.meter.compact(world.meter.weigh(text) + world.chance.between(*RESTORED_TOKENS))
        world.project.grow()

    def _clear(self) -> bool:
        """Clear old results; return false while there are none to clear."""
        meter = self._world.meter
        before = meter.size
        cleared, saved = meter.clear(keep=KEPT_RESULTS)
        if not cleared:
            return False
        metadata: Json = {
            "trigger": "auto",
            "preTokens": before,
            "tokensSaved": saved,
            "compactedToolIds": cleared,
            "clearedAttachmentUUIDs": [],
        }
        self._world.writer.system(
            "microcompact_boundary",
            content="Context microcompacted",
            isMeta=False,
            level="info",
            microcompactMetadata=metadata,
        )
        return True


def _spread(recipe: Recipe) -> deque[tuple[float, Happening]]:
    counts: tuple[tuple[Happening, int], ...] = (
        ("compact", recipe.compactions),
        ("clear", recipe.clearings),
        ("picture", recipe.pictures),
    )
    due = [
        (recipe.records * (number + 1) / (count + 1), kind)
        for kind, count in counts
        for number in range(count)
    ]
    return deque(sorted(due))
