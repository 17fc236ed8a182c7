"""The pages say what is true now: examples run, and help texts are the commands' own."""

import os
import re
from pathlib import Path

import click
import pytest

from holdfast.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent
LEAD = "# Commands\n\nGenerated from the commands themselves by `make golden`; do not edit.\n"


def rendered() -> str:
    """Write every command's help as one page."""
    pages = [LEAD]
    with click.Context(cli, info_name="holdfast") as outer:
        for name in sorted(COMMANDS):
            command = cli.get_command(outer, name)
            assert command is not None
            with click.Context(
                command, info_name=name, parent=outer, max_content_width=100
            ) as inner:
                pages.append(f"\n## holdfast {name}\n\n```\n{command.get_help(inner)}\n```\n")
    return "".join(pages)


def test_the_page_of_commands_is_what_the_commands_say():
    """docs/cli.md is generated; `make golden` writes it anew."""
    page = ROOT / "docs" / "cli.md"
    if os.environ.get("HOLDFAST_REWRITE_GOLDEN"):
        page.write_text(rendered(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == rendered()


@pytest.mark.parametrize("page", ["README.md", "docs/compacting.md"])
def test_every_python_example_runs(page, capsys):
    """What a reader copies from the pages works as it stands."""
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
    assert "tokens" in capsys.readouterr().out


def test_every_command_is_in_the_readme():
    """A command nobody can find is not there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [
        name for name in COMMANDS if f"holdfast {name}" not in text and f"make {name}" not in text
    ] == []


def test_links_between_pages_lead_somewhere():
    """A page that is linked exists."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"
