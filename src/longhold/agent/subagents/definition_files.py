"""Finds agent definitions: a project's override the user's, and those the built-in ones.

A project needs the user's trust to replace a name. Unusable files are skipped with a reason.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from longhold.agent.permissions.sources import SettingsSection, as_section
from longhold.agent.subagents.definition import (
    Definition,
    DefinitionDraft,
    DefinitionSource,
    grant,
    read_definition,
)
from longhold.core.settings import home
from longhold.core.settings.front_matter import UnreadableFrontMatter
from longhold.core.settings.project import UnusableFile, read_text
from longhold.errors import ConfigError

FILE_BYTES = 256 << 10
FILES = 200
PROJECT_PLACES = (".claude/agents", ".longhold/agents")
"""In a project; later directories take precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    known: tuple[Definition, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()
    """Sections that need the user's trust; see `permissions.trust`."""
    skipped: tuple[str, ...] = ()

    def find(self, name: str) -> Definition | None:
        wanted = name.casefold()
        return next((one for one in self.known if one.name.casefold() == wanted), None)


def load_definitions(project: Path | None) -> Definitions:
    found: dict[str, Definition] = {}
    taken: dict[str, str] = {}
    untrusted: list[SettingsSection] = []
    skipped: list[str] = []
    for draft, reason in _drafts(project):
        if draft is None:
            skipped.append(reason)
            continue
        definition = draft.definition
        name = definition.name.casefold()
        if definition.source != "project":
            taken[name] = definition.source
        section = _section(draft, taken.get(name, ""), project)
        if section is not None and not section.is_trusted:
            untrusted.append(section)
            if "replaces" in section.value:
                continue
        try:
            held, unknown = grant(draft, section)
        except ConfigError as error:
            skipped.append(str(error))
            continue
        skipped += unknown
        found[name] = held
    return Definitions(
        known=tuple(found[name] for name in sorted(found)),
        untrusted=tuple(untrusted),
        skipped=tuple(skipped),
    )


def listing(definitions: Iterable[Definition]) -> str:
    return "\n".join(f"- {one.name}: {one.description}" for one in definitions)


def _section(draft: DefinitionDraft, taken_by: str, project: Path | None) -> SettingsSection | None:
    """Return the demands of a project's definition with their trust; None if there are none."""
    definition = draft.definition
    demands = dict(draft.demands)
    if taken_by:
        demands |= {"replaces": f"{definition.name} ({taken_by})", "sha256": draft.sha256}
    if definition.source != "project" or not demands:
        return None
    assert definition.file is not None
    return as_section("agents", definition.file, demands, project)


def _drafts(project: Path | None) -> Iterator[tuple[DefinitionDraft | None, str]]:
    with as_file(files("longhold.agent.subagents") / "definitions") as ours:
        yield from _read_directory(ours, ours, "built in")
    yield from _read_directory(home() / "agents", home() / "agents", "user")
    if project is not None:
        for place in PROJECT_PLACES:
            yield from _read_directory(project / place, project, "project")


def _read_directory(
    directory: Path, root: Path, source: DefinitionSource
) -> Iterator[tuple[DefinitionDraft | None, str]]:
    within = root.resolve() if source == "project" else None
    if not directory.is_dir():
        return
    for count, file in enumerate(sorted(directory.rglob("*.md"))):
        if count >= FILES:
            yield None, f"{directory}: only the first {FILES} files are read"
            return
        try:
            text = read_text(file, FILE_BYTES, within=within)
            yield read_definition(text, file, source), ""
        except (UnreadableFrontMatter, UnusableFile, ConfigError) as error:
            yield None, f"{file}: {error}"
