"""Checks every tool call, prompts the user if needed, and remembers the answer.

An answer covers one call or becomes a rule for the session. Refused calls do not prompt twice.
Without a user to ask, "ask" becomes "deny".
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec

from longhold.agent.permissions.call import ToolCall, examine
from longhold.agent.permissions.decide import Decision, Mode, decide, pick_narrower
from longhold.agent.permissions.places import Places
from longhold.agent.permissions.rules import Rule, Rules, plain_host
from longhold.core.messages import JsonObject
from longhold.core.tools.context import JUDGED
from longhold.core.tools.protocol import Tool
from longhold.core.tools.shell_reader import split_words

_FAMILIES = {
    "git": split_words(
        "add branch checkout commit diff fetch log merge mv pull push restore rm show stash status"
        " switch tag"
    ),
    "docker": split_words("images inspect logs ps"),
}
"""Verbs without an option that runs another program. `call.py` lists the exceptions for git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    tool: str
    given: JsonObject
    reason: str
    suggestion: Rule | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    choice: Literal["once", "always", "no"]
    reason: str = ""
    """The text that the model sees with a refusal."""


AskUser: TypeAlias = Callable[[Question], Awaitable[Answer]]
AskFirst: TypeAlias = Callable[[Question], Awaitable[Decision | None]]
"""Answers instead of the user, or returns None to leave the answer to the user."""


class Gate:
    """The permissions of one session. This is the only mutable state in this package."""

    def __init__(
        self,
        *,
        rules: Rules,
        mode: Mode = "ask",
        ask: AskUser | None = None,
        above: "Gate | None" = None,
    ) -> None:
        self.rules = rules
        self.mode: Mode = mode
        self._ask = ask
        self._above = above
        """The parent agent's gate. This gate never allows more than the parent's gate."""
        self._denials: dict[bytes, str] = {}

    def switch_mode(self, mode: Mode) -> Mode:
        before, self.mode = self.mode, mode
        return before

    @property
    def in_force(self) -> Mode:
        return self.mode if self._above is None else pick_narrower(self.mode, self._above.in_force)

    def judge(self, tool: Tool, given: JsonObject, places: Places) -> Decision:
        return decide(_examine(tool, given, places), self.rules, self.in_force, places)

    async def check(
        self,
        tool: Tool,
        given: JsonObject,
        places: Places,
        *,
        hook: Decision | None = None,
        ask_first: AskFirst | None = None,
    ) -> Decision:
        """Allow or deny a call, and prompt the user if needed. `hook` is a hook's earlier decision.

        `ask_first` receives the question before the user, and also if there is no user.
        """
        call = _examine(tool, given, places)
        decision = combine(decide(call, self.rules, self.in_force, places), hook)
        key = msgspec.json.encode([tool.name, given], order="deterministic")
        if decision.outcome == "ask" and key in self._denials:
            reason = f"this was refused before: {self._denials[key]}"
            decision = Decision(outcome="deny", reason=reason)
        elif decision.outcome == "ask":
            question = Question(
                tool=call.tool,
                given=given,
                reason=decision.reason,
                suggestion=_suggest_rule(call),
            )
            first = await ask_first(question) if ask_first is not None else None
            decision = first or await self._ask_user(question)
        if decision.by_user:
            self._denials[key] = decision.reason
        return decision

    def forget_denials(self) -> None:
        """Allow prompts again, after a new message from the user."""
        self._denials.clear()

    async def _ask_user(self, question: Question) -> Decision:
        if self._ask is None:
            reason = f"there is no user to ask, and {question.reason}"
            return Decision(outcome="deny", reason=reason)
        suggestion = question.suggestion
        answer = await self._ask(question)
        if answer.choice == "no":
            reason = answer.reason or "the user said no"
            return Decision(outcome="deny", reason=reason, by_user=True, words=answer.reason)
        if answer.choice == "always" and suggestion is not None:
            self.rules = replace(self.rules, allow=(*self.rules.allow, suggestion))
        return Decision(outcome="allow", reason="the user said yes")


def _examine(tool: Tool, given: JsonObject, places: Places) -> ToolCall:
    """Examine a call, and bind the tool to the files that its paths lead to now."""
    call = examine(tool, given, places)
    JUDGED.set({at.spelled: at.path for at in call.paths if at.spelled and at.path})
    return call


def combine(decision: Decision, hook: Decision | None) -> Decision:
    """Combine a decision with a hook's decision. A denial wins. Otherwise the hook decides."""
    return decision if hook is None or decision.outcome == "deny" else hook


def _suggest_rule(call: ToolCall) -> Rule | None:
    """Return the narrowest rule that would avoid this prompt."""
    match call.kind:
        case "shell":
            return _suggest_command(call)
        case "fetch":
            host = plain_host(call.url)
            return Rule(tool=call.tool, content=f"domain:{host}") if host else None
        case "read" | "search" | "write":
            path = call.paths[0].path if call.paths else None
            tool = "Edit" if call.kind == "write" else "Read"
            is_plain = path is not None and not set("*?") & set(str(path))
            return Rule(tool=tool, content=str(path)) if is_plain else None
        case "ask" | "other":
            return Rule(tool=call.tool)


def _suggest_command(call: ToolCall) -> Rule | None:
    shell = call.shell
    if shell is None:
        return None
    words = shell.script.commands[0].words if len(shell.script.commands) == 1 else ()
    simple = bool(words) and not shell.script.doubts and shell.danger is None
    if simple and len(words) > 1 and words[1].text in _FAMILIES.get(words[0].text, ()):
        return Rule(tool=call.tool, content=f"{words[0].text} {words[1].text}:*")
    text = shell.text.strip()
    return Rule(tool=call.tool, content=text) if "*" not in text else None
