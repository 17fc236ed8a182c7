"""Run the command line with `python -m longhold`."""

from longhold.cli import main

main()
