"""The words and the source code that generated sessions are made of.

Both are data files next to this module, as templates with slots (`@entity@`). The words for the
slots are drawn for each template, so texts look alike without repeating each other.
"""

import re
from functools import cache
from importlib.resources import files

import msgspec

from generated_sessions.chance import Chance

SLOT = re.compile(r"@(\w+)@")
LARGEST_NUMBER = 97
"""Two digits read as a limit, a percentage or a line number alike."""


class Language(msgspec.Struct, frozen=True, kw_only=True):
    head: str = ""
    pieces: tuple[str, ...]
    statements: tuple[str, ...]
    """Lines that an edit may put in."""


class Code(msgspec.Struct, frozen=True, kw_only=True):
    python: Language
    python_tests: Language
    typescript: Language
    sql: Language
    markdown: Language


class UserLines(msgspec.Struct, frozen=True, kw_only=True):
    asks: tuple[str, ...]
    rules: tuple[str, ...]
    corrections: tuple[str, ...]
    cancels: tuple[str, ...]
    short: tuple[str, ...]
    pastes: tuple[str, ...]


class ModelLines(msgspec.Struct, frozen=True, kw_only=True):
    openers: tuple[str, ...]
    thoughts: tuple[str, ...]
    closings: tuple[str, ...]
    points: tuple[str, ...]
    tasks: tuple[str, ...]
    summary: tuple[str, ...]


class Prose(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[str, ...]
    purposes: tuple[str, ...]
    entities: tuple[str, ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    fields: tuple[str, ...]
    adjectives: tuple[str, ...]
    words: tuple[str, ...]
    user: UserLines
    model: ModelLines


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture small in bytes: one colour, full size."""

    width: int
    height: int
    data: str
    """PNG, base64. Kept as data because compressors differ between machines."""


class Pictures(msgspec.Struct, frozen=True, kw_only=True):
    png: tuple[Picture, ...]


def _read(name: str) -> bytes:
    return (files(__package__) / "data" / name).read_bytes()


@cache
def code() -> Code:
    return msgspec.toml.decode(_read("code.toml"), type=Code)


@cache
def prose() -> Prose:
    return msgspec.toml.decode(_read("prose.toml"), type=Prose)


@cache
def pictures() -> tuple[Picture, ...]:
    return msgspec.toml.decode(_read("pictures.toml"), type=Pictures).png


class WordList(dict[str, str]):
    """The words for the slots of one template: each drawn once, when first needed."""

    def __init__(self, chance: Chance, *, entity: str, other: str, path: str) -> None:
        super().__init__(entity=entity, other=other, path=path)
        self._chance = chance

    def __missing__(self, slot: str) -> str:
        if slot.startswith("field"):
            self |= zip(("field", "field2", "field3"), self._three_fields(), strict=True)
        else:
            self[slot] = self._draw(slot)
        return self[slot]

    def _draw(self, slot: str) -> str:
        chance, vocabulary = self._chance, prose()
        match slot:
            case "noun":
                return chance.pick(vocabulary.nouns)
            case "verb":
                return chance.pick(vocabulary.verbs)
            case "adjective":
                return chance.pick(vocabulary.adjectives)
            case "word":
                return chance.pick(vocabulary.words)
            case "name":
                return chance.pick(vocabulary.names)
            case "purpose":
                return chance.pick(vocabulary.purposes)
            case "num" | "num2":
                return str(chance.between(10, LARGEST_NUMBER))
            case "small" | "digit":
                return str(chance.between(2, 9))
            case _ if slot.isupper():
                return self[slot.lower()].upper()
            case _ if slot.istitle():
                return self[slot.lower()].capitalize()
            case _:
                raise KeyError(slot)

    def _three_fields(self) -> list[str]:
        start = self._chance.between(0, len(prose().fields) - 1)
        return [prose().fields[(start + step) % len(prose().fields)] for step in (0, 5, 7)]


def fill(template: str, words: WordList) -> str:
    """Fill the slots of a template; an unknown slot is an error in the corpus."""
    return SLOT.sub(lambda slot: words[slot[1]], template)
