"""The course of a generated session: turns, and what happens between their rounds.

A recipe goes in, records come out in file order. Each turn is a message of the user, some
rounds of tool calls and a last answer; compactions, clearings and pictures are spread over the
file and take place between rounds.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec

from holdfast.simulator.sessions import phrases as speech
from holdfast.simulator.sessions.answers import Answers
from holdfast.simulator.sessions.calls import Json
from holdfast.simulator.sessions.world import World

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
    """What a session should hold."""

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
    """One session while it is being made up."""

    def __init__(self, recipe: Recipe) -> None:
        """Set the scene."""
        self._recipe = recipe
        self._scene = World.set(
            recipe.seed, model=recipe.model, is_sidechain=recipe.is_sidechain, scale=recipe.scale
        )
        self._answers = Answers(self._scene)
        self._schedule = _spread(recipe)
        self._is_picture_due = False
        self._is_closing = False

    def run(self) -> Iterator[Json]:
        """Tell the session from its first record to its last."""
        scene = self._scene
        self._open()
        text = (
            speech.instructions(scene.project)
            if scene.is_sidechain
            else speech.first_message(scene.project)
        )
        while True:
            self._user_speaks(text)
            for _ in self._turn():
                yield from scene.scribe.drain()
            if self._is_over():
                return
            text = speech.user_message(scene.project, scene.balance.appetite("user"))

    def close(self) -> None:
        """Let the session end with the round under way."""
        self._is_closing = True

    def _is_over(self) -> bool:
        is_told = self._is_closing or self._scene.scribe.written >= self._recipe.records
        return is_told and not self._schedule and not self._is_picture_due

    def _open(self) -> None:
        scene, scribe = self._scene, self._scene.scribe
        if scene.is_sidechain:
            return
        if scene.chance.odds(RESUMED_SHARE):
            scribe.head = scene.chance.uuid()
            scribe.title(speech.title(scene.project), scribe.head)
            scribe.stop_hooks()
        elif self._answers.has_hooks:
            scribe.hook_progress("SessionStart:startup", scene.chance.uuid())

    def _turn(self) -> Iterator[None]:
        """Play one turn; yields after each round so that records can leave early."""
        rounds = self._scene.chance.length(*ROUNDS)
        began = self._scene.scribe.seconds
        done, is_first = 0, True
        while not self._is_over() and (done < rounds or self._scene.is_sidechain):
            calls = [self._scene.tools.look()] if self._is_picture_due else None
            self._is_picture_due = False
            self._answers.call_tools(is_first=is_first, calls=calls)
            is_first = self._happen()
            done += 1
            yield
        self._answers.conclude(is_first=is_first)
        if not self._scene.is_sidechain:
            self._after_turn(began)
        yield

    def _user_speaks(self, text: str) -> None:
        scene, chance = self._scene, self._scene.chance
        if scene.is_sidechain:
            scene.say(text)
            return
        scene.scribe.wait(chance.length(*PAUSE_SECONDS))
        scene.scribe.snapshot()
        if chance.odds(COMMAND_SHARE):
            self._slash_command()
        if self._is_picture_due and chance.odds(0.5):
            self._is_picture_due = False
            scene.show_picture(text)
        else:
            scene.say(text)
        if chance.odds(OVERLOADED_SHARE):
            self._overloaded()

    def _after_turn(self, began: float) -> None:
        """Write what the agent notes when a turn ends, unless the user cut it short."""
        scene, scribe = self._scene, self._scene.scribe
        if scene.chance.odds(INTERRUPTED_SHARE):
            scribe.user([{"type": "text", "text": "[Request interrupted by user]"}])
            return
        if self._answers.has_hooks:
            scribe.hook_progress("Stop", scene.chance.uuid())
        scribe.stop_hooks()
        if scene.chance.odds(TIMED_SHARE):
            scribe.system(
                "turn_duration", durationMs=int((scribe.seconds - began) * 1000), isMeta=False
            )

    def _slash_command(self) -> None:
        """Write a command the user ran: one beside the conversation, or one that is a prompt."""
        scene = self._scene
        if scene.chance.odds(0.5):
            caveat = (
                "<local-command-caveat>Run by the user, not meant for you.</local-command-caveat>"
            )
            scene.say_meta(caveat, caveat)
            scene.say("<command-name>/status</command-name>\n<command-args></command-args>")
            text = (
                f"<local-command-stdout>Session {scene.scribe.session[:8]}</local-command-stdout>"
            )
            scene.scribe.system("local_command", content=text, level="info", isMeta=False)
        else:
            scene.say("<command-name>/review</command-name>\n<command-args></command-args>")
            text = speech.instructions(scene.project)
            scene.say_meta([{"type": "text", "text": text}], text)

    def _overloaded(self) -> None:
        """Let the provider refuse a few times, now and then for good."""
        scene, chance = self._scene, self._scene.chance
        request = chance.token("req_011C", 20)
        error: Json = {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
            "request_id": request,
        }
        for attempt in range(1, chance.between(2, 5)):
            scene.scribe.wait(attempt * 2.5)
            scene.scribe.system(
                "api_error",
                level="error",
                error={"status": 529, "requestID": request, "error": error},
                retryInMs=round(500 * 2**attempt * chance.uniform(0.9, 1.1), 3),
                retryAttempt=attempt,
                maxRetries=10,
            )
        if chance.odds(0.3):
            scene.scribe.synthetic(f"API Error: 529 {msgspec.json.encode(error).decode()}")
            scene.say("continue")

    def _happen(self) -> bool:
        """Do what is due after this round; return whether the history was replaced."""
        line = self._recipe.line_tokens
        was_compacted = line is not None and self._scene.meter.size >= line
        if was_compacted:
            self._compact()
        while self._schedule and self._schedule[0][0] <= self._scene.scribe.written:
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
        scene = self._scene
        text = speech.summary(scene.project)
        scene.scribe.wait(scene.chance.uniform(20.0, 60.0))
        scene.scribe.boundary(trigger="auto", preTokens=scene.meter.size)
        scene.scribe.user(text, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        scene.meter.compact(scene.meter.weigh(text) + scene.chance.between(*RESTORED_TOKENS))
        scene.project.grow()

    def _clear(self) -> bool:
        """Clear old results; return false while there are none to clear."""
        meter = self._scene.meter
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
        self._scene.scribe.system(
            "microcompact_boundary",
            content="Context microcompacted",
            isMeta=False,
            level="info",
            microcompactMetadata=metadata,
        )
        return True


def _spread(recipe: Recipe) -> deque[tuple[float, Happening]]:
    """Spread what was asked for evenly over the file."""
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
