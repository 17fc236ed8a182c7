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
_STOP_CHARS = "的了是在我你他她它这那有不和就都也吗呢吧啊么们个一上下中到说要会为以"
STOP_WORDS = frozenset((*_STOP.split(), *_STOP_CHARS))

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z][A-Za-z0-9]*|\b[A-Z]{2,}[a-z][A-Za-z0-9]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_HAN = "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = re.compile(f"[{_HAN}\u3005\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af]+")
_IDEOGRAPH = re.compile(f"[{_HAN}]")


def split_unspaced(text: str) -> str:
    """Rewrite Chinese, Japanese and Korean text as overlapping pairs and single ideographs."""
    if text.isascii():
        return text
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", text)


def unspaced_words(text: str) -> str:
    """Return only the pairs and ideographs, which are searched in addition to the text."""
    if text.isascii():
        return ""
    return " ".join(word for run in _UNSPACED.findall(text) for word in _pairs(run))


def _pairs(run: str) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [*pairs, *(_IDEOGRAPH.findall(run) if pairs else run)]


def words_of(text: str) -> list[str]:
    words = dict.fromkeys(
        part.lower() for word in _WORD.findall(text) for part in (word, *_parts(word))
    )
    return [
        word
        for word in words
        if word not in STOP_WORDS and (len(word) > 1 or _UNSPACED.match(word))
    ]


def name_parts(text: str) -> str:
    return " ".join(part for name in set(_NAME.findall(text)) for part in _parts(name))


def _parts(word: str) -> list[str]:
    parts = _HUMP.findall(word)
    return parts if len(parts) > 1 and not word.islower() else []
