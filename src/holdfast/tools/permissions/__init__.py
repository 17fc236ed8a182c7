"""Permissions: rules, modes, and asking the user.

`Gate` is asked before every tool runs; `decide` is the pure decision behind it; both rest on a
strict reading of shell commands (`is_read_only_command`).
"""

from holdfast.tools.permissions.call import examine
from holdfast.tools.permissions.decide import Decision, Mode, decide
from holdfast.tools.permissions.gate import Answer, AskUser, Gate, Question, combine
from holdfast.tools.permissions.places import Places
from holdfast.tools.permissions.readonly import is_read_only_command
from holdfast.tools.permissions.rules import Rules, parse_rule, parse_rules
from holdfast.tools.permissions.sources import (
    Permissions,
    SettingsSection,
    load_permissions,
    read_sections,
    trust,
    trusted,
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
    "examine",
    "is_read_only_command",
    "load_permissions",
    "parse_rule",
    "parse_rules",
    "read_sections",
    "trust",
    "trusted",
    "vouch",
]
