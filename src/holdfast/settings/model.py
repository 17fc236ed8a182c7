"""Who answers."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Who answers."""

    name: str = setting("claude-sonnet-5-5", "a model that codes well at a middling price")
    fallback: str = setting("", "answers when the first is overloaded; '' is nobody")
    base_url: str = setting(
        "",
        "where the provider answers, and where the key goes; '' is its own address",
        personal=True,
    )
