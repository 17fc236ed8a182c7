"""The agent: how long it works by itself, what its prompt says, which instructions it reads, its agents."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.settings.setting import setting

Mode: TypeAlias = Literal["ask", "accept_edits", "plan", "bypass"]
"""How freely tools may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    output_tokens: int = setting(
        8_000, "99 % of answers are under 5,000; asking for more reserves more", low=1
    )
    escalated_output_tokens: int = setting(
        64_000, "asked for once when an answer was cut off at the first limit", low=1
    )
    output_recoveries: int = setting(
        3, "how often a cut answer is resumed before it is left as it is", low=0, high=20
    )
    max_turns: int = setting(0, "answers with tool calls per run; 0 is no limit", low=0)
    same_failures: int = setting(
        10,
        "how often in a row the same calls may fail in the same way; a model that goes on is stuck",
        low=1,
        high=1_000,
    )
    parallel_tools: int = setting(10, "tools that change nothing run side by side", low=1, high=64)
    stop_blocks: int = setting(
        8, "how often in a row stop hooks may keep the agent going", low=0, high=1_000
    )
    budget_continuations: int = setting(
        50, "how often a token budget may ask for more work in one run", low=0, high=1_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    pass_variables: str = setting(
        "",
        "keys for models that commands and hooks get all the same: names of variables, with spaces"
        " between them",
        form=r"[A-Za-z0-9_ ]*",
        personal=True,
    )

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(self.pass_variables.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    language: str = setting(
        "",
        "the language of answers, such as 'German'; '' is the user's",
        form=r"[\w ()-]{0,40}",
        personal=True,
    )
    git: bool = setting(True, "tell the model the state of the repository when a session begins")
    git_status_chars: int = setting(
        2_000, "of the list of changed files; more is noise after the first turns", low=0
    )
    git_commits: int = setting(
        5, "recent commits, to show how messages are written", low=0, high=50
    )
    git_seconds: float = setting(
        3.0,
        "how long git may take; a session does not wait for a huge repository",
        low=0.1,
        high=60,
    )
    full_tokens: int = setting(
        20_000,
        "a smaller window gets no agents, no memory and only the core tools: all of them with"
        " their instructions take 8,500 tokens",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSettings:
    on: bool = setting(True, "read AGENTS.md and CLAUDE.md files", personal=True)
    user_claude: bool = setting(
        True,
        "read the user's own CLAUDE.md, too: who comes from elsewhere has their rules there",
        personal=True,
    )
    above_project: bool = setting(
        True,
        "read files above the repository that belong to the user or to root",
        personal=True,
    )
    nested: bool = setting(True, "read files further down once something near them is touched")
    exclude: str = setting(
        "",
        "patterns of project files to leave out, with commas between: 'vendor/**, CLAUDE.local.md'",
    )
    import_hops: int = setting(
        4, "imports of imports are followed this far; deeper ones are mistakes", low=0, high=16
    )
    max_file_bytes: int = setting(
        4 << 20, "a larger file is no instruction; it is skipped and said", low=1_024
    )
    large_chars: int = setting(
        40_000, "a longer file is used but flagged: it costs 10,000 tokens in every call", low=1
    )
    max_files: int = setting(
        200,
        "more files than this are a mistake or an attack; the rest is left out",
        low=1,
        high=500,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
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
        0.5, "how soon an idle teammate or session notices mail", low=0.05
    )
    wakes: int = setting(
        20,
        "turns in a row on mail and reports while the user says nothing: two sessions that write to "
        "each other end there",
        low=0,
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
