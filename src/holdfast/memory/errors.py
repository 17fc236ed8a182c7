"""Errors of the memory store. Each message says what to do next; none repeats a secret."""

from holdfast.errors import HoldfastError, StoreError


class MemoryRefused(HoldfastError, ValueError):
    """A name or a text that may not be stored."""

    exit_code = 2


class NoSuchMemory(HoldfastError, LookupError):
    """No memory has that name, or no commit that number."""

    exit_code = 5


class MemoryBusy(StoreError):
    """Another process is writing the store; nothing was changed, and trying again may help."""


class MemoryConflict(StoreError):
    """The memory changed since it was read; the later writer gets this error."""
