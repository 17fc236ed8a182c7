"""Run the command line with `longhold` or `python -m longhold`."""

import io
import sys


def main() -> None:
    if sys.platform == "win32":  # because a pipe's encoding there lacks most characters
        for stream in (sys.stdout, sys.stderr):
            assert isinstance(stream, io.TextIOWrapper)
            stream.reconfigure(encoding="utf-8")
    if sys.argv[1:] == ["statusline"]:
        from longhold.insight.clients.known_status import say_known_line  # needs few imports

        if say_known_line():
            return
    from longhold.cli import main as run

    run()


if __name__ == "__main__":
    main()
