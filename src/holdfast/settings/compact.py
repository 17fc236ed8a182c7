"""How history becomes a summary."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """How history becomes a summary."""

    on: bool = setting(True, "compact at all, by hand or by itself")
    reactive_only: bool = setting(
        False, "wait until the provider says the prompt is too long; uses more of the window"
    )
    model: bool = setting(
        True, "let a model write summaries; off makes digests, which cost nothing"
    )
    by_provider: bool = setting(
        False, "let the provider compact on its side where it can; ours keeps more and is readable"
    )
    failures: int = setting(
        3, "after this many in a row no model is asked any more by itself", low=1, high=100
    )
    rung_seconds: float = setting(
        300.0, "how long one way of having a summary written may take", low=1
    )
    ahead: bool = setting(True, "have the summary written in the background before it is needed")
    ahead_ratio: float = setting(
        0.9,
        "of the auto line; from there a summary is prepared while the work goes on",
        low=0.1,
        high=1.0,
    )
    thrash_turns: int = setting(
        3, "a window that is full again after so few answers was refilled by something", low=1
    )
    thrash_times: int = setting(3, "how often in a row before that is looked into", low=1)
    restore_files: int = setting(5, "files read last that are shown again", low=0, high=100)
    restore_file_tokens: int = setting(5_000, "of each of them", low=100)
    restore_tokens: int = setting(50_000, "of all of them", low=0)
    skill_tokens: int = setting(5_000, "of each skill that was used", low=100)
    skills_tokens: int = setting(25_000, "of all of them", low=0)
    progress_seconds: float = setting(5.0, "how often it is said that it still runs", low=0.1)
