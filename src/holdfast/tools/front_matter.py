"""The front matter of a definition: YAML between two `---` lines.

The text of a file comes in; its fields as plain JSON values and the body go out. Many such
files are not quite YAML (a description with a colon in it): those are read line by line
instead, and then only plain fields can be had. Aliases are refused, since a few of them can
stand for gigabytes.
"""

import re
from functools import cache
from typing import Any

import msgspec

from holdfast.messages import Json, JsonObject
from holdfast.tools.skills import front_matter

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$\r?\n?", re.DOTALL | re.MULTILINE)


class UnreadableFrontMatter(ValueError):
    """The front matter says nothing that could be a definition."""


def read_front(text: str) -> tuple[JsonObject, str]:
    """Split a file into its fields, their names in one spelling, and its body."""
    found = _FRONT.match(text)
    if found is None:
        raise UnreadableFrontMatter("it does not begin with fields between two --- lines")
    parsed = _parsed(found[1])
    fields = parsed if isinstance(parsed, dict) else dict(front_matter(text)[0])
    return {_spelling(str(key)): value for key, value in fields.items()}, text[
        found.end() :
    ].strip()


def _spelling(key: str) -> str:
    """Write `permissionMode`, `permission_mode` and `permission-mode` alike."""
    return re.sub(r"[_-]", "", key).casefold()


def _parsed(text: str) -> Json:
    """Read YAML as plain JSON values; None where it is none."""
    import yaml  # type: ignore[import-untyped]  # only here: most sessions read no definition

    try:
        value = yaml.load(text, Loader=_loader())
        return msgspec.json.decode(msgspec.json.encode(value))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


@cache
def _loader() -> Any:
    import yaml

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """Values only: nothing is made, and nothing stands for something else."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias")
            return super().compose_node(parent, index)

    return Plain


def text_in(fields: JsonObject, key: str) -> str:
    """Give a field as text; what is no text is none."""
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def names_in(fields: JsonObject, key: str) -> tuple[str, ...] | None:
    """Give a field as names: a list, or words between commas; None if the field is not there."""
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(str(item).strip() for item in value if isinstance(item, str) and item.strip())
    words = re.split(r",|(?:^|\s)-\s", str(value).strip("[] "))
    return tuple(word.strip(" \"'") for word in words if word.strip(" \"'"))


def number_in(fields: JsonObject, key: str) -> int:
    """Give a field as a whole number; what is none is zero."""
    value = str(fields.get(key, "")).strip()
    return int(value) if re.fullmatch(r"[0-9]{1,6}", value) else 0


def is_on(fields: JsonObject, key: str) -> bool:
    """Say whether a field is switched on."""
    return str(fields.get(key, "")).strip().casefold() == "true"
