"""The prompt for updating notes; users can replace the template and the wording.

`~/.longhold/notes/template.md` replaces the sections, `prompt.md` the wording, in which `{path}` and
`{notes}` are filled in. Sections that are too long are named in it.
"""

from importlib.resources import files
from pathlib import Path

from longhold.core.stages.notes.page import NotesPage, read_template
from longhold.core.view.tokens import estimate_tokens

FAVOURED = '"Current state" and "Errors and corrections"'
SECTION_TOKENS = 2_000
"""Of each section; past it the model is asked to condense, and compacting cuts."""
TOTAL_TOKENS = 12_000
"""Of all sections together."""


def template(home: Path) -> NotesPage:
    return read_template(_read_own(home, "template.md") or _read_ours("template"))


def ask_for_update(page: NotesPage, file: Path, home: Path) -> str:
    words = _read_own(home, "prompt.md") or _read_ours("update")
    values = {
        "path": str(file),
        "section_tokens": f"{SECTION_TOKENS:,}",
        "reminders": "\n".join(reminders(page)),
        "notes": page.as_written().render().strip(),  # last: nothing in it is replaced
    }
    for name, value in values.items():
        words = words.replace(f"{{{name}}}", value)
    return words.strip()


def reminders(page: NotesPage) -> list[str]:
    """List the sections that must be condensed, and whether the whole page must be."""
    sizes = {heading: estimate_tokens(text) for heading, text in page.written().items() if text}
    said = [
        f'- "{heading}" has about {tokens:,} tokens. Condense it: join what belongs together, drop what is settled.'
        for heading, tokens in sizes.items()
        if tokens > SECTION_TOKENS
    ]
    total = sum(sizes.values())
    if total > TOTAL_TOKENS:
        said.append(
            f"- All of it has about {total:,} tokens and may have {TOTAL_TOKENS:,}. "
            f"Shorten it hard now; what is in {FAVOURED} goes last."
        )
    return said


def _read_own(home: Path, name: str) -> str:
    try:
        return (home / "notes" / name).read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _read_ours(name: str) -> str:
    return (
        (files("longhold.core.stages.notes") / "prompts" / f"{name}.md").read_text("utf-8").strip()
    )
