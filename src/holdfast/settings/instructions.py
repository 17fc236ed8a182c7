"""Which instruction files are read."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSettings:
    """Which instruction files are read."""

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
