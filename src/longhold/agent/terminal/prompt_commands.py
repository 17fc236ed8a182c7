"""Slash commands that are prompts. Each command is one Markdown file.

They come from Longhold, from the user's home directory, and from the project. A project's files
need the user's trust. If several files define a name, the first in this order wins.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from longhold.agent.permissions import load_trusted
from longhold.agent.permissions.sources import SettingsSection
from longhold.agent.terminal.screen import SlashCommand, SlashContext
from longhold.core.messages.text import clean_line
from longhold.core.settings import front_matter, home
from longhold.core.settings.project import UnusableFile, checkout_top, read_text
from longhold.core.settings.reading import user_home
from longhold.errors import ConfigError

ARGUMENTS = "$ARGUMENTS"
PROMPT_BYTES = 256 << 10
MOST, NAME_CHARS, HELP_CHARS = 200, 40, 70
SHIPPED = Path(__file__).parent / "prompts"


def load_prompts(project: Path) -> dict[str, SlashCommand]:
    """Return the commands by name. An untrusted command only reports that it is untrusted."""
    found: dict[str, SlashCommand] = {}
    for section in _sections(project):
        command = _as_command(section)
        found.setdefault(command.name, command)
    return found


def list_untrusted(project: Path) -> list[SettingsSection]:
    return [section for section in _sections(project) if not section.is_trusted]


def _sections(project: Path) -> Iterator[SettingsSection]:
    trusted = load_trusted()
    users = (SHIPPED, home() / "commands", user_home() / ".claude" / "commands")
    places: list[tuple[Path, Path | None]] = [(place, None) for place in users]
    places += [(project / name / "commands", project) for name in (".longhold", ".claude")]
    for place, owner in places:
        for file in sorted(place.glob("*.md"))[:MOST]:
            try:
                text = read_text(file, PROMPT_BYTES, within=owner and checkout_top(owner))
            except UnusableFile:
                continue
            given = f"command\0{file.resolve()}\0{text}".encode("utf-8", "surrogateescape")
            mark = hashlib.sha256(given).hexdigest()
            yield SettingsSection(
                file=file,
                value={"prompt": text},
                fingerprint=mark,
                is_trusted=owner is None or mark in trusted,
                name="commands",
                project=owner,
            )


def _as_command(section: SettingsSection) -> SlashCommand:
    fields, body = front_matter.parse(str(section.value["prompt"]))
    help = front_matter.text_in(fields, "description") or body.strip().partition("\n")[0]

    async def run(context: SlashContext, rest: str) -> None:
        if not section.is_trusted:
            raise ConfigError(f"{section.file} is not trusted yet; `longhold trust` shows it")
        text = body.replace(ARGUMENTS, rest)
        added = f"\n\n{rest}" if rest and ARGUMENTS not in body else ""
        await context.take_turn(f"{text.strip()}{added}")

    name = f"/{clean_line(section.file.stem, NAME_CHARS).replace(' ', '-')}"
    usage = f"{name} [WORDS]" if ARGUMENTS in body else name
    return SlashCommand(name=name, usage=usage, help=clean_line(help, HELP_CHARS), run=run)
