"""What the system prompt says of its surroundings."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """What the system prompt says of its surroundings."""

    language: str = setting(
        "", "the language of answers, such as 'German'; '' is the user's", form=r"[\w ()-]{0,40}"
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
