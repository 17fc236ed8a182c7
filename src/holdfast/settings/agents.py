"""How many agents work, how deep and how long."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """How many agents work, how deep and how long."""

    on: bool = setting(True, "let the model start agents")
