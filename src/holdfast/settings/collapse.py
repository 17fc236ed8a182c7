"""When spans of finished work are shown as a line."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseSettings:
    """When spans of finished work are shown as a line."""

    on: bool = setting(False, "fold spans instead of compacting; the two exclude each other")
    commit_ratio: float = setting(
        0.90, "of the window that may be filled: from here on spans are folded", low=0.1, high=1.0
    )
    write_ratio: float = setting(
        0.95, "if folding left this much, a fork writes lines for whole answers", low=0.1, high=1.0
    )
    target_ratio: float = setting(
        0.70,
        "fold down to this at once: every fold costs a rewrite of the cache",
        low=0.0,
        high=1.0,
    )
    least_tokens: int = setting(
        1_000, "a shorter span stays: its line costs about a tenth of this", low=0
    )
    line_chars: int = setting(400, "a line is to be read at a glance", low=80, high=4_000)
    write: bool = setting(True, "let a fork write lines; without it they are only counted up")
