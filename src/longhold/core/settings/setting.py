"""One setting: its default, its reason, and what it may be; groups of them are dataclasses."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str

NOT_STAGED = r"(?!scripted:|chaos:).*"
"""A model's name in a file; one whose answers are prepared is for the command line and the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    default: Value
    why: str
    """Printed by `longhold config`."""
    low: float | None = None
    high: float | None = None
    form: str = ""
    """For text: a regular expression it must match as a whole."""
    is_personal: bool = False
    """Only the user may set it: in a cloned repository it could do harm."""


def setting(default: Any, why: str, **limits: Any) -> Any:
    """Make a dataclass field; `limits` are the other fields of `SettingSpec`."""
    return field(
        default=default, metadata={"spec": SettingSpec(default=default, why=why, **limits)}
    )


personal = partial(setting, is_personal=True)
"""The same for a setting that a project's file must not change."""
