"""Split questions and texts into words for search."""

import re

_STOP = (
    "a an and are as at be but by can could did do does for from had has have he her his how i if"
    " in into is it its me my not of on or our she so that the their them then there they this to"
    " us was we were what when where which who whom why will with would you your please let about"
    " just some any all get got make made also been than too very am say said tell told know go went"
    " going kind kinds sort many much often ever likely during after before while until since one"
    " other such both each only own same no nor these those him himself herself themselves being"
)
STOP_WORDS = frozenset(_STOP.split())

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z][A-Za-z0-9]*|\b[A-Z]{2,}[a-z][A-Za-z0-9]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(text: str) -> list[str]:
    words = dict.fromkeys(
        part.lower() for word in _WORD.findall(text) for part in (word, *_parts(word))
    )
    return [word for word in words if word not in STOP_WORDS and len(word) > 1]


def name_parts(text: str) -> str:
    return " ".join(part for name in set(_NAME.findall(text)) for part in _parts(name))


def _parts(word: str) -> list[str]:
    parts = _HUMP.findall(word)
    return parts if len(parts) > 1 and not word.islower() else []
