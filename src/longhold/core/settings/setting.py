"""One setting with its default, description and allowed values. Groups are dataclasses."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str

STAGED = ("scripted:", "replay:")
"""Prefixes of models that play prepared answers. Only a name that the user typed opens one."""
NOT_STAGED = rf"(?!(?i:{'|'.join(STAGED)})).*"
"""A pattern for the model names that files may contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    default: Value
    why: str
    low: float | None = None
    high: float | None = None
    form: str = ""
    """A regular expression that must match the whole text."""
    is_personal: bool = False
    """Only the user may change this setting, because a cloned repository could abuse it."""


def setting(default: Any, why: str, **limits: Any) -> Any:
    return field(
        default=default, metadata={"spec": SettingSpec(default=default, why=why, **limits)}
    )


personal = partial(setting, is_personal=True)
