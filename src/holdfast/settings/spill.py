"""When a tool's result goes to disk, and what of it is shown."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    """When a tool's result goes to disk, and what of it is shown."""

    on: bool = setting(True, "put results that are over their budget on disk")
    result_chars: int = setting(
        50_000,
        "longer results are spilled: 12,000 tokens, a sixteenth of a 200K window",
        low=1_000,
    )
    failed_chars: int = setting(
        10_000,
        "the same for a command that failed: its ends and its errors tell more than its middle",
        low=1_000,
    )
    message_chars: int = setting(
        200_000,
        "all results of one message together: a quarter of a 200K window",
        low=1_000,
    )
    ceiling_chars: int = setting(
        400_000,
        "no result stays whole above this, whoever asks for more: half of a 200K window",
        low=1_000,
    )
    tools: str = setting(
        "",
        "limits in characters by tool, such as 'Bash=10000, mcp__db__*=80000'",
        form=r"|\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*(,\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*)*",
    )
    preview_bytes: int = setting(
        2_000, "how much of a spilled result is shown: enough to see what it is", low=200
    )
    failed_preview_bytes: int = setting(
        6_000, "the same for a command that failed, which is looked at more closely", low=200
    )
    error_bytes: int = setting(
        2_000, "lines of a command's output that look like errors, beside the preview", low=0
    )
    repeat_bytes: int = setting(
        256,
        "a result that was there before, byte for byte, is named instead from this size on; "
        "below, naming it costs as much",
        low=200,
    )
    file_bytes: int = setting(
        64 << 20, "a body larger than this is cut: nobody reads on so far", low=1 << 20
    )
    session_bytes: int = setting(
        1 << 30, "all bodies of a session together; past it the oldest go first", low=1 << 20
    )
    retention_days: int = setting(
        30, "bodies older than this are removed, as whole sessions are; 0 keeps all", low=0
    )
