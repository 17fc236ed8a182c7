"""How many agents work, how deep and how long."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """How many agents work, how deep and how long."""

    on: bool = setting(True, "let the model start agents")
    at_once: int = setting(20, "more than this nobody can follow or pay for", low=1, high=1_000)
    depth: int = setting(
        3, "agents that start agents: the main one's are the first level", low=0, high=10
    )
    background_seconds: float = setting(
        120.0, "one that takes longer goes on in the background; 0 never", low=0
    )
    progress_seconds: float = setting(
        30.0, "how often a running one gets a line of what it does; 0 never", low=0
    )
    progress_model: bool = setting(
        False, "ask the model for that line; else it is made from the last tool call"
    )
    output_chars: int = setting(
        32_000,
        "of an answer the parent reads at once: about 8,000 tokens; the rest is a file",
        low=1,
    )
    mail_poll_seconds: float = setting(
        0.5, "how soon an idle teammate notices mail from another process", low=0.05
    )
    mail_chars: int = setting(
        32_000, "one message: as much as an answer; more belongs in a file that is named", low=100
    )
    mail_round_chars: int = setting(
        64_000,
        "mail brought to one round; the rest waits, so that it cannot flood the window",
        low=100,
    )
    sessions_mail: bool = setting(
        True, "take mail from other sessions of yours on this machine", personal=True
    )
    coordinator: bool = setting(False, "only direct workers in the background, never work itself")
