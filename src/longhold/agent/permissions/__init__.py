"""Permissions: rules, modes, and prompting the user.

`Gate` checks every tool call. `decide` is the pure function that makes the decision.
"""

from longhold.agent.permissions.call import examine
from longhold.agent.permissions.decide import Decision, Mode, decide, denies_reading
from longhold.agent.permissions.gate import Answer, AskUser, Gate, Question, combine
from longhold.agent.permissions.places import Places
from longhold.agent.permissions.readonly import is_read_only_command
from longhold.agent.permissions.rules import Rules, parse_rule, parse_rules
from longhold.agent.permissions.sources import (
    Permissions,
    SettingsSection,
    load_permissions,
    load_trusted,
    read_sections,
    trust,
    vouch,
)

__all__ = [
    "Answer",
    "AskUser",
    "Decision",
    "Gate",
    "Mode",
    "Permissions",
    "Places",
    "Question",
    "Rules",
    "SettingsSection",
    "combine",
    "decide",
    "denies_reading",
    "examine",
    "is_read_only_command",
    "load_permissions",
    "load_trusted",
    "parse_rule",
    "parse_rules",
    "read_sections",
    "trust",
    "vouch",
]
