"""The command with which other programs run this installation."""

import shutil
import sys

NAME = "longhold"


def program() -> str:
    """Return the shell command for this installation, even if its script is not on the PATH."""
    found = shutil.which(NAME)
    return found if found and " " not in found else f"{sys.executable} -m {NAME}"
