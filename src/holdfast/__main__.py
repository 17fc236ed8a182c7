"""Run the command line with `python -m holdfast`."""

from holdfast.cli import main

main()
