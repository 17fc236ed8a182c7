"""Where the lines lie in a model's window."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """Where the lines lie in a model's window."""

    limit_tokens: int = setting(0, "the model's window; 0 asks the model table", low=0)
    allow_long: bool = setting(True, "use windows over 200K where the model has one")
    reserve_tokens: int = setting(
        20_000, "room for a summary to be written; 99.99 % of summaries are under 17,400", low=0
    )
    auto: bool = setting(True, "make room without being asked once the auto line is reached")
    auto_line: str = setting(
        "",
        "where room is made: '' is the window's own line, '150000' tokens, '80%', or 'cost'",
        form=r"|cost|[1-9][\d_,]*|\d{1,3}(\.\d+)?%",
    )
    auto_window_tokens: int = setting(
        0, "treat the window as this large when placing the auto line; 0 is the real one", low=0
    )
    auto_buffer_tokens: int = setting(
        13_000, "a whole answer can still arrive after the check", low=0
    )
    warning_buffer_tokens: int = setting(20_000, "warn this far before the auto line", low=0)
    error_buffer_tokens: int = setting(20_000, "show red this far before the auto line", low=0)
    blocking_buffer_tokens: int = setting(
        3_000, "what a request to make room by hand itself needs", low=0
    )
