"""Decides whether a tool may run: allow, deny or ask, with a reason. All functions are pure.

Deny rules win in every mode. Calls prompt unless they are proven harmless or a rule allows them.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

from longhold.agent.permissions.call import ShellCall, ToolCall
from longhold.agent.permissions.places import Located, Places, locate
from longhold.agent.permissions.readonly import has_safe_redirects, is_read_only, is_reading_only
from longhold.agent.permissions.rules import (
    Rule,
    Rules,
    allows_command,
    allows_path,
    allows_url,
    denies_command,
    denies_path,
    denies_url,
    is_for_tool,
    names_path,
)
from longhold.core.settings import Mode as Mode
from longhold.core.tools.shell_programs import every_command, hidden_commands
from longhold.core.tools.shell_reader import Command

SESSIONS_OWN = frozenset(
    {
        "Agent", "AgentStop", "CallTool", "EnterPlan", "SendMessage", "Skill", "TaskClaim", "TaskCreate",
        "TaskGet", "TaskList", "TaskUpdate", "TodoWrite", "ToolSearch", "memory",
    }
)  # fmt: skip
"""Tools that change only the session's own state."""
NEEDS_APPROVAL = frozenset({"ExitPlan"})
"""Tools that exist to get a person's approval."""

_WIDTH: dict[Mode, int] = {"plan": 0, "ask": 1, "accept_edits": 2, "bypass": 3}


def pick_narrower(one: Mode, other: Mode) -> Mode:
    return min(one, other, key=_WIDTH.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    outcome: Literal["allow", "deny", "ask"]
    reason: str
    by_user: bool = False
    """Whether the user refused this very call. A remembered refusal does not count."""
    words: str = ""


def decide(call: ToolCall, rules: Rules, mode: Mode, places: Places) -> Decision:
    denied = next((rule for rule in rules.deny if _denies(rule, call, places)), None)
    if denied is not None:
        return Decision(outcome="deny", reason=f"the rule {denied} forbids it")
    if any(located.where == "impossible" for located in call.paths):
        return Decision(outcome="deny", reason="that is not a path")
    shell = call.shell
    if shell and shell.danger and shell.danger.level == "ruin" and mode != "plan":
        return Decision(outcome="ask", reason=shell.danger.reason)
    if shell and "too long" in shell.script.doubts and mode != "plan":
        return Decision(outcome="ask", reason="the command is too long to be checked")
    if shell and shell.is_opaque and any(rule.tool == call.tool for rule in rules.deny):
        return Decision(
            outcome="ask", reason="the program it runs cannot be compared with the deny rules"
        )
    if mode == "bypass":
        return Decision(outcome="allow", reason="this mode does not prompt")
    return _decide_by_kind(call, rules, mode, places)


def _decide_by_kind(call: ToolCall, rules: Rules, mode: Mode, places: Places) -> Decision:
    # because an MCP tool's declared kind only affects clearing and proves nothing here
    match "other" if call.tool.startswith("mcp__") else call.kind:
        case "read" | "search":
            return _decide_reading(call, rules, places)
        case "write":
            return _decide_writing(call, rules, mode, places)
        case "shell":
            return _decide_shell(call, rules, mode, places)
        case "ask" if call.tool in NEEDS_APPROVAL:
            return Decision(outcome="ask", reason="it needs the user's approval")
        case "ask":
            return Decision(outcome="allow", reason="it only asks the user")
        case "fetch" | "other":
            return _decide_other(call, rules, mode)


def _decide_reading(call: ToolCall, rules: Rules, places: Places) -> Decision:
    outside = _find_unreadable(call.paths, call.tool, rules, places)
    if outside is not None:
        return Decision(outcome="ask", reason=_why_outside(outside))
    return Decision(outcome="allow", reason="it reads inside the working directories")


def _find_unreadable(
    paths: tuple[Located, ...], tool: str, rules: Rules, places: Places
) -> Located | None:
    named = _filter_allowing(rules, tool)
    for at in paths:
        is_allowed = at.where == "outside" and any(allows_path(rule, at, places) for rule in named)
        if at.where not in ("inside", "readable", "own") and not is_allowed:
            return at
    return None


def _filter_allowing(rules: Rules, tool: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules.allow if is_for_tool(rule, tool))


def _decide_writing(call: ToolCall, rules: Rules, mode: Mode, places: Places) -> Decision:
    if call.paths and all(located.where == "own" for located in call.paths):
        return Decision(outcome="allow", reason="the file is the session's own")
    if mode == "plan":
        return Decision(outcome="deny", reason="plan mode allows no changes")
    if not call.paths:
        return Decision(outcome="ask", reason="the call does not name the file it writes")
    blocked = next(
        (at for at in call.paths if not _may_write(at, call.tool, rules, mode, places)), None
    )
    if blocked is None:
        return Decision(outcome="allow", reason="edits here are allowed")
    if blocked.is_protected:
        return Decision(
            outcome="ask", reason=f"{blocked.text} can make other programs run commands"
        )
    if blocked.where != "inside":
        return Decision(outcome="ask", reason=_why_outside(blocked))
    return Decision(outcome="ask", reason=f"it changes {blocked.text}")


def _may_write(located: Located, tool: str, rules: Rules, mode: Mode, places: Places) -> bool:
    named = _filter_allowing(rules, tool)
    if any(names_path(rule, located, places) for rule in named):
        return located.where in ("inside", "outside")
    if located.is_protected:
        return False
    if any(rule.content and allows_path(rule, located, places) for rule in named):
        return located.where in ("inside", "outside")
    is_open = mode == "accept_edits" or any(not rule.content for rule in named)
    return is_open and located.where == "inside"


def _decide_shell(call: ToolCall, rules: Rules, mode: Mode, places: Places) -> Decision:
    shell = call.shell
    if shell is None and not call.has_command:
        return Decision(outcome="allow", reason="it manages a command that was allowed")
    if shell is None:
        return Decision(outcome="ask", reason="it has no command to judge")
    named = _filter_allowing(rules, call.tool)
    is_named = any(rule.is_exact and rule.content == shell.text.strip() for rule in named)
    if is_named and mode != "plan":
        return Decision(outcome="allow", reason="a rule allows exactly this command")
    if mode == "plan" and not shell.is_read_only:
        return Decision(outcome="deny", reason="plan mode allows no changes")
    if shell.danger is not None and not shell.is_read_only:
        return Decision(outcome="ask", reason=shell.danger.reason)
    if shell.reach.is_unseen:
        doubts = ", ".join(sorted(shell.script.doubts)) or "names that are set elsewhere"
        reason = f"the command cannot be checked beforehand ({doubts})"
        return Decision(outcome="ask", reason=reason)
    outside = _find_unreadable(shell.reach.touched, "Read", rules, places)
    if outside is not None:
        return Decision(outcome="ask", reason=_why_outside(outside))
    if shell.is_read_only:
        return Decision(outcome="allow", reason="the command changes nothing")
    return _decide_changing(shell, named, rules, mode, places)


def _decide_changing(
    shell: ShellCall, named: tuple[Rule, ...], rules: Rules, mode: Mode, places: Places
) -> Decision:
    """Decide on a command that changes something and has no known danger."""
    for located in shell.reach.touched:
        if located.is_protected or located.where != "inside":
            return Decision(outcome="ask", reason=f"it may change {located.text}")
    for located in shell.reach.written:
        if not _may_write(located, "Edit", rules, mode, places):
            return Decision(outcome="ask", reason=f"it writes {located.text}")
    is_narrow = is_reading_only(shell.script)
    for command in shell.script.commands:
        # because a line that may change things has an environment in which git runs hooks
        is_free = not shell.objection and (is_narrow or command.name != "git")
        if not _is_covered(command, named, is_free=is_free):
            reason = shell.objection or f"no rule allows {command.name or 'this'}"
            return Decision(outcome="ask", reason=reason)
    return Decision(outcome="allow", reason="rules allow every part of it")


def _is_covered(command: Command, named: tuple[Rule, ...], *, is_free: bool) -> bool:
    if is_free and is_read_only(command):
        return True
    if command.assignments or not command.words:
        return False
    # because the caller has already checked where redirections write
    plain = has_safe_redirects(command) or all(r.target.is_literal for r in command.redirects)
    bare = replace(command, redirects=())
    if command.name == "cd" or (is_free and is_read_only(bare)):
        return plain
    return plain and any(allows_command(rule, command) for rule in named)


def _decide_other(call: ToolCall, rules: Rules, mode: Mode) -> Decision:
    if call.tool in SESSIONS_OWN and not call.to.startswith("session:"):
        return Decision(outcome="allow", reason="it changes only the session's own state")
    if mode == "plan" and call.kind == "other" and not call.is_read_only:
        return Decision(
            outcome="ask", reason="it may change something, and the session is in plan mode"
        )
    for rule in _filter_allowing(rules, call.tool):
        if not rule.content or (call.kind == "fetch" and allows_url(rule, call.url)):
            return Decision(outcome="allow", reason=f"the rule {rule} allows it")
    if call.kind == "other" and call.is_read_only:
        return Decision(outcome="allow", reason="it changes nothing")
    what = f"it opens {call.url}" if call.url else f"no rule allows {call.tool}"
    if call.tool in SESSIONS_OWN:
        what = f"it writes to another session, {call.to.removeprefix('session:')!r}"
    return Decision(outcome="ask", reason=what)


def _denies(rule: Rule, call: ToolCall, places: Places) -> bool:
    if call.shell is not None:
        return _denies_shell(rule, call.tool, call.shell, places)
    if not is_for_tool(rule, call.tool):
        return False
    if not rule.content:
        return True
    match call.kind:
        case "fetch":
            return denies_url(rule, call.url)
        case "read" | "search" | "write":
            return any(denies_path(rule, located, places) for located in call.paths)
        case "shell" | "ask" | "other":
            return True


def denies_reading(rules: Rules, path: Path, places: Places) -> bool:
    """Return whether a deny rule covers a file that a search found."""
    named = [rule for rule in rules.deny if rule.content and is_for_tool(rule, "Read")]
    return any(denies_path(rule, locate(str(path), places), places) for rule in named)


def _denies_shell(rule: Rule, tool: str, shell: ShellCall, places: Places) -> bool:
    if is_for_tool(rule, tool):
        return rule.content in ("", shell.text.strip()) or any(
            denies_command(rule, command)
            for command in chain(every_command(shell.script), hidden_commands(shell.script))
        )
    reach = shell.reach
    if not rule.content:
        return False
    if is_for_tool(rule, "Read"):
        return any(denies_path(rule, at, places) for at in (*reach.touched, *reach.written))
    if is_for_tool(rule, "Edit"):
        at_risk = reach.written if shell.is_read_only else (*reach.touched, *reach.written)
        return any(denies_path(rule, at, places) for at in at_risk)
    return False


def _why_outside(located: Located) -> str:
    if located.where == "outside":
        return f"{located.text} is outside the working directories"
    return f"it is unclear where {located.text!r} leads"
