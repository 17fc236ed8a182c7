"""The exceptions of Longhold.

    LongholdError
    ├─ ConfigError (ValueError)     which key, which file, what is allowed
    │   └─ InvalidArgument          which argument of a call, what is wrong with it, what will do
    ├─ SessionClosed                a session was used after it was closed
    ├─ TranscriptError              a log or a foreign transcript that cannot be read
    │   └─ NewerFormat              written by a newer version than this one
    ├─ StoreError (OSError)         a file could not be read, written or locked
    │   ├─ LogLocked                another process is writing this log
    │   ├─ LeaseLost                another process took this log over meanwhile
    │   └─ SessionExists            the id is taken
    ├─ SessionNotFound (LookupError)
    ├─ NotInHistory (LookupError)   no such message, tool use, line or span
    ├─ ContextOverflow              needed, allowed, what was tried
    ├─ Aborted                      the work was stopped; nothing was changed
    ├─ PrefixMoved                  a request does not extend the last one: a bug in Longhold
    └─ ModelError
        ├─ PromptTooLong            by how many tokens, if the provider says
        ├─ ModelUnavailable         overloaded or rate limited; retry after
        ├─ ModelRefused             it will not answer this
        ├─ AuthenticationFailed     the key is missing or wrong
        ├─ StreamBroken             the answer stopped midway
        ├─ RequestRejected          the provider says the request is malformed
        └─ BudgetSpent              no call was made: a limit is reached

Only what cannot go on raises; what a session can go on after is an entry in its log instead.
The last clause of each message says what to do.
"""

from pathlib import Path


class LongholdError(Exception):
    """Root of the tree; the command line prints its message as one line."""

    exit_code = 1


class ConfigError(LongholdError, ValueError):
    """A setting has a name or a value that is not allowed."""

    exit_code = 2


class InvalidArgument(ConfigError):
    """An argument of a call cannot be used; nothing was recorded."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        super().__init__(f"{argument}: {problem}")


class SessionClosed(LongholdError):
    """A session was used after it was closed."""

    def __init__(self, id: str) -> None:
        super().__init__(f"the session is closed; Session.resume({id!r}) goes on with it")


class TranscriptError(LongholdError):
    """A log or a transcript cannot be read."""

    exit_code = 3

    def __init__(self, path: Path | str, reason: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.reason = reason
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {reason}")


class NewerFormat(TranscriptError):
    """The file was written by a newer version than this one."""


class StoreError(LongholdError, OSError):
    """A file operation failed; nothing that was acknowledged before is lost."""

    exit_code = 4


class LogLocked(StoreError):
    """A log has one writer at a time, and another process is it."""

    def __init__(self, path: Path, holder: str) -> None:
        self.path = path
        self.holder = holder
        super().__init__(
            f"{path.name} is being written by {holder}; close that session or branch this one"
        )


class LeaseLost(StoreError):
    """Another process became the log's writer; what was not committed is not in it."""


class SessionExists(StoreError):
    """A session has that id already; none is ever overwritten."""


class SessionNotFound(LongholdError, LookupError):
    """No session has that id, or several begin with it."""

    exit_code = 5


class NotInHistory(LongholdError, LookupError):
    """A session's past has no such message, tool use, line or span."""

    exit_code = 5


class ContextOverflow(LongholdError):
    """The parts that every request holds do not fit the window."""

    exit_code = 6


class Aborted(LongholdError):
    """The work was stopped before anything was changed."""

    exit_code = 130


class PrefixMoved(LongholdError):
    """A request does not extend the one before it and no entry says why: a bug in Longhold."""


class ModelError(LongholdError):
    """The model's side failed; subclasses say whether trying again can help."""

    exit_code = 7

    def __init__(self, message: str, *, status: int | None = None, request_id: str = "") -> None:
        self.status = status
        self.request_id = request_id
        super().__init__(message)


class PromptTooLong(ModelError):
    """The prompt is over the window; the numbers are set where the provider gave them."""

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int | None = None,
        allowed_tokens: int | None = None,
        status: int | None = None,
        request_id: str = "",
    ) -> None:
        self.needed_tokens = needed_tokens
        self.allowed_tokens = allowed_tokens
        super().__init__(message, status=status, request_id=request_id)


class ModelUnavailable(ModelError):
    """Overloaded, rate limited or unreachable: the same request may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        status: int | None = None,
        request_id: str = "",
    ) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message, status=status, request_id=request_id)


class ModelRefused(ModelError):
    """The model declined to answer; the same request will be declined again."""


class AuthenticationFailed(ModelError):
    """The key is missing, wrong, or may not use this model."""


class StreamBroken(ModelError):
    """The answer began and then stopped: closed, stalled, or an error event after a 200."""


class RequestRejected(ModelError):
    """The provider calls the request malformed; do not send it again."""


class BudgetSpent(ModelError):
    """No call was made: a spending limit is reached."""
