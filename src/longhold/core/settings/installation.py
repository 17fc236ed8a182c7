"""The command with which other programs run this installation."""

import sys
from pathlib import Path

NAME = "longhold"


def program() -> tuple[str, ...]:
    """Return the words that run this installation, by whole paths.

    Clients run them inside any project, so neither PATH nor the working directory may decide what
    runs: `-P` keeps the working directory off the module path.
    """
    script = Path(sys.executable).with_name(NAME)
    return (str(script),) if script.is_file() else (sys.executable, "-P", "-m", NAME)
