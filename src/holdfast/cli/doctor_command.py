"""`holdfast doctor`: what works here, and the fix for what does not."""

import sys

import click

from holdfast.cli.doctor import examine
from holdfast.cli.show import json_out

MARKS = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN "}


@click.command(epilog="Example: holdfast doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(as_json: bool) -> None:
    """Check keys, extras, tools, disk and permissions, and say how to mend what is amiss.

    The exit code is 1 if something is broken; what is merely missing is optional.
    """
    findings = list(examine())
    if as_json:
        json_out(findings)
    else:
        for finding in findings:
            fix = f"   → {finding.fix}" if finding.fix and finding.state != "ok" else ""
            click.echo(f"{MARKS[finding.state]}  {finding.name:<24} {finding.detail}{fix}")
    if any(finding.state == "broken" for finding in findings):
        sys.exit(1)
