"""All exceptions that Longhold raises.

    LongholdError
    ├─ ConfigError (ValueError)     a setting is unknown or its value is not allowed
    │   └─ InvalidArgument          an argument of a call is invalid
    ├─ SessionBusy                  two callers at once, or an answer that matches no request
    ├─ SessionClosed                a session was used after it was closed
    ├─ TranscriptError              a log or a foreign transcript cannot be read
    │   └─ NewerFormat              written by a newer version of Longhold
    ├─ StoreError (OSError)         a file could not be read, written or locked
    │   ├─ LogLocked                another process is writing this log
    │   ├─ LeaseLost                another process has taken over this log
    │   └─ SessionExists            the id is taken
    ├─ SessionNotFound (LookupError)
    ├─ NotInHistory (LookupError)   no such message, tool use, line or span
    ├─ ContextOverflow              the fixed parts of a request exceed the context window
    ├─ Aborted                      the work was stopped; nothing was changed
    ├─ PrefixMoved                  a request does not extend the last one: a bug in Longhold
    └─ ModelError
        ├─ PromptTooLong            the prompt exceeds the context window
        ├─ ModelUnavailable         the provider is overloaded, rate limiting or down
        ├─ ModelRefused             the model declined to answer
        ├─ AuthenticationFailed     the key is missing or wrong
        ├─ StreamBroken             the answer stopped midway
        ├─ RequestRejected          the provider considers the request malformed
        └─ BudgetSpent              a spending limit is reached; no call was made

A problem that a session survives is an entry in its log, not an exception.
Each message ends with what to do.
"""

from pathlib import Path


class LongholdError(Exception):
    """The base of all exceptions here. The command line prints the message as one line."""

    exit_code = 1


class ConfigError(LongholdError, ValueError):
    """A setting has an unknown name or a value that is not allowed."""

    exit_code = 2


class InvalidArgument(ConfigError):
    """An argument of a call is invalid. Nothing was recorded."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        super().__init__(f"{argument}: {problem}")


class SessionClosed(LongholdError):
    """A session was used after it was closed."""

    def __init__(self, id: str) -> None:
        super().__init__(f"the session is closed; Session.resume({id!r}) resumes it")


class SessionBusy(LongholdError):
    """Two callers used a session at the same time, or an answer matches no request."""

    exit_code = 4


class TranscriptError(LongholdError):
    """A log or a foreign transcript cannot be read."""

    exit_code = 3

    def __init__(self, path: Path | str, reason: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.reason = reason
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place} {reason}")


class NewerFormat(TranscriptError):
    """A newer version of Longhold wrote the file."""


class StoreError(LongholdError, OSError):
    """A file operation failed. Everything acknowledged before it is still stored."""

    exit_code = 4


class LogLocked(StoreError):
    """Another process is writing this log. A log has one writer at a time."""

    def __init__(self, path: Path, holder: str) -> None:
        self.path = path
        self.holder = holder
        super().__init__(
            f"{path.name} is being written by {holder}; close that session or branch this one"
        )


class LeaseLost(StoreError):
    """Another process became the log's writer. Uncommitted entries are not in the log."""


class SessionExists(StoreError):
    """The session id is taken. Existing sessions are never overwritten."""


class SessionNotFound(LongholdError, LookupError):
    """No session has this id, or several ids begin with it."""

    exit_code = 5


class NotInHistory(LongholdError, LookupError):
    """The session has no such message, tool use, line or span."""

    exit_code = 5


class ContextOverflow(LongholdError):
    """The fixed parts of a request alone exceed the context window."""

    exit_code = 6


class Aborted(LongholdError):
    """The work was stopped before anything changed."""

    exit_code = 130


class PrefixMoved(LongholdError):
    """A request does not extend the previous one, and no log entry explains it. This is a bug."""


class ModelError(LongholdError):
    """A model call failed. The subclass determines whether a retry can help."""

    exit_code = 7

    def __init__(self, message: str, *, status: int | None = None, request_id: str = "") -> None:
        self.status = status
        self.request_id = request_id
        super().__init__(message)


class PromptTooLong(ModelError):
    """The prompt exceeds the context window. Token counts are None if the provider omits them."""

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
    """The provider is overloaded, rate limiting or unreachable. A retry may succeed."""

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
    """The model declined to answer. A retry will be declined too."""


class AuthenticationFailed(ModelError):
    """The key is missing, wrong, or lacks access to this model."""


class StreamBroken(ModelError):
    """The stream was closed, stalled, or sent an error event after status 200."""


class RequestRejected(ModelError):
    """The provider considers the request malformed. Do not retry."""


class BudgetSpent(ModelError):
    """A spending limit is reached. No call was made."""
