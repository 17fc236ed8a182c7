"""The agent: how long it works by itself, what its prompt says, which instructions it reads, its agents."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.core.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    plain: bool = setting(
        False, "talk line by line, as screen readers and simple terminals need it", personal=True
    )
    suggest: bool = setting(
        True,
        "after an answer, ask the model what you might say next and show it in grey: one short call"
        " on the cached prompt, only within the engine's own share (budget.own_share)",
        personal=True,
    )
    away_minutes: float = setting(
        30.0,
        "who comes back to the keyboard after this long is reminded of where they were; 0 never",
        low=0,
        personal=True,
    )
    mention_tokens: int = setting(
        30_000,
        "of files named with @ in one message: one whole Read and a few short files; what is longer"
        " is left to the model to read; less in small windows",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    on: bool = setting(True, "manage what clients send; off, everything is only passed on")
    body_bytes: int = setting(
        33_554_432, "the Messages API refuses longer requests", low=1_024, personal=True
    )
    head_bytes: int = setting(
        65_536, "clients' headers are a few thousand bytes", low=1_024, personal=True
    )
    body_seconds: float = setting(
        60.0,
        "a client that takes longer to send the head of its request, or its body, is stuck",
        low=0.1,
        personal=True,
    )
    connect_seconds: float = setting(
        10.0, "an upstream that does not answer by then is down", low=0.1, personal=True
    )
    read_seconds: float = setting(
        900.0, "longer than the official SDKs wait for the next byte", low=1.0, personal=True
    )
    idle_seconds: float = setting(
        20.0,
        "then a session's log is closed, so that `undo` and `compact` can write to it",
        low=0.0,
        personal=True,
    )
    need_weight: float = setting(
        8.0,
        "in place of cost.need_weight: a client reads its files again with its own tools. With it"
        " the results that are gone when they are needed are as many tokens as under the cost"
        " policy, whose compactions a client makes itself",
        low=0.0,
    )
    warm_share: float = setting(
        0.6,
        "in place of clear.warm_share: the text behind what is cleared is written anew, and in a"
        " small window that is most of it, so clearing less often costs less there",
        low=0.0,
        high=1.0,
    )
    stake_share: float = setting(
        0.1,
        "in place of clear.stake_share: what a session may at worst cost more than without us, if"
        " it ends right after a clearing; over 25 recorded ones the worst was 0.6 %",
        low=0.0,
        high=1.0,
    )
    handover_seconds: float = setting(
        1.0,
        "another process that holds a session's log lets go between two calls: longer than that"
        " takes, and little enough for a client to wait",
        low=0.0,
        personal=True,
    )
    tenant_usd_per_day: float = setting(
        0.0, "of each credential, over all processes here; 0 is no limit", low=0.0, personal=True
    )
    open_sessions: int = setting(
        200, "more are closed, the longest idle first: each holds its history in memory", low=1
    )
    shadow: bool = setting(
        True, "count what the client's own requests would have cost: the saving is measured by it"
    )


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
