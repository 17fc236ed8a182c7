"""What the memory store says no to.

    MemoryRefused (ValueError)   a name or a text that may not be kept
    NoSuchMemory (LookupError)   nothing has that name, or no commit that number
    MemoryConflict (StoreError)  somebody else changed it since it was read

Each message says what to do; none repeats a secret.
"""

from holdfast.errors import HoldfastError, StoreError


class MemoryRefused(HoldfastError, ValueError):
    """A name or a text that may not be kept."""

    exit_code = 2


class NoSuchMemory(HoldfastError, LookupError):
    """Nothing has that name, or no commit that number."""

    exit_code = 5


class MemoryConflict(StoreError):
    """Somebody else changed it since it was read; the later writer is told."""
