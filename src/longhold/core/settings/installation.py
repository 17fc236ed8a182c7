"""How this installation is called by other programs."""

import shutil
import sys

NAME = "longhold"


def program() -> str:
    """Return how a client calls this installation."""
    found = shutil.which(NAME)
    return found if found and " " not in found else f"{sys.executable} -m {NAME}"
