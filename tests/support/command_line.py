"""The command line in the test's own process: same arguments, output and exit code.

Tests of signals, pipes, terminals and kills use a real process instead.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from longhold.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def longhold(
    *words: object,
    cwd: Path | None = None,
    input: str = "",
    env: Mapping[str, str | None] | None = None,
) -> Done:
    """Run a command to its end; `env` is added to the environment, None takes a variable out."""
    with (
        chdir(cwd or os.curdir),
        CliRunner().isolation(input=input, env=env) as (out, err, _),
    ):
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, out.getvalue().decode(), err.getvalue().decode())
