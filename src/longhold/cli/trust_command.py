"""`longhold trust`: review what a project wants to run or allow, and trust it."""

from pathlib import Path

import click

from longhold.agent.instructions.gathering import ground, list_waiting_imports
from longhold.agent.permissions import load_trusted, read_sections, trust, vouch
from longhold.agent.permissions.repositories import find_hooks
from longhold.agent.subagents.definition import load_definitions
from longhold.agent.terminal.prompt_commands import list_untrusted
from longhold.cli.output import ask_yes_no, json_out, json_text, say
from longhold.core.messages.text import clean_text
from longhold.core.settings import load_settings

KINDS = ("hooks", "permissions", "mcpServers")


@click.command(epilog="Example: longhold trust")
@click.option("--yes", is_flag=True, help="Trust everything without asking.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print untrusted parts as JSON, without asking."
)
def command(yes: bool, as_json: bool) -> None:
    """Review what a project wants to run or allow, and trust it.

    The command shows the project's hooks, permission rules, servers, agents, commands, imports and
    git hooks that you have not trusted yet, and asks about each. Longhold uses none of them before
    you trust it. After a change, you must trust it again.
    """
    waiting = [
        (kind, section)
        for kind in KINDS
        for section in read_sections(kind, Path.cwd())
        if not section.is_trusted
    ]
    waiting += [("agents", section) for section in load_definitions(Path.cwd()).untrusted]
    hooks = find_hooks(Path.cwd())
    waiting += [("git hooks", hooks)] if hooks is not None and not hooks.is_trusted else []
    waiting += [("a command", section) for section in list_untrusted(Path.cwd())]
    place = ground(Path.cwd(), settings=load_settings(Path.cwd()).instructions)
    imports = list_waiting_imports(
        place, trusted=load_trusted()
    )  # including those in subdirectories
    if as_json:
        shown = [{"kind": kind, "file": str(s.file), "value": s.value} for kind, s in waiting]
        for one in imports:
            kind = "local" if one.sha256 else "import"
            shown.append({"kind": kind, "file": str(one.importer), "value": str(one.path)})
        json_out(shown)
        return
    if not waiting and not imports:
        say("This project has nothing to trust.")
    for kind, section in waiting:
        say(f"{clean_text(str(section.file))} defines {kind}:")
        say(json_text(section.value))
        if yes or ask_yes_no("Trust its current content?"):
            trust(section)
            say("Trusted.")
    for one in imports:
        if one.sha256:
            say(f"{clean_text(str(one.path))} would count as your own instructions")
            question = "Did you write its current content?"
        else:
            say(f"{clean_text(str(one.importer))} imports {clean_text(str(one.path))}")
            question = "Trust this file, including all later changes?"
        if yes or ask_yes_no(question):
            vouch(one.fingerprint)
            say("Trusted.")
