"""Count the features of a text that are needed to estimate any model's token count.

Measures can be added, and log entries with content store one. For speed, each character becomes the
bit of its class, and the text becomes one large integer. A run starts where the left neighbour
lacks the bit.
"""

import re
import zlib
from base64 import b64decode
from collections.abc import Iterable
from operator import sub

import msgspec
from msgspec import Struct, structs

from longhold.core.messages import (
    Block,
    Document,
    Image,
    JsonObject,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

IMAGE_TOKENS = 1_600
"""Tokens of the largest image that is not shrunk: 1.15 megapixels at 750 pixels per token."""
PAGE_TOKENS = 2_000  # tokens of a typical PDF page, which is sent as text and as an image
PDF_CHARS = 48 << 20
"""A longer PDF counts as one page, because providers refuse it and reading it takes seconds."""
SIGNATURE_FRAME_CHARS = 240
"""Length of the signature of empty thinking. Everything beyond it is thinking in base64."""
CHUNK_BYTES = 1 << 18
"""Longer texts are counted in chunks to limit memory. A run across a chunk edge counts twice."""

LETTER, HUMP, DIGIT, MARK, SPACE, LINE, WIDE, FOREIGN = (bytes((1 << bit,)) for bit in range(8))
CAPITAL = bytes((LETTER[0] | HUMP[0],))
"""After a lowercase letter, only the second bit starts a run. After a capital, neither does."""
SYMBOL = bytes((WIDE[0] | FOREIGN[0],))
"""Both bits always start a run, because the byte before a non-ASCII character has neither."""


def _class_of(byte: int) -> int:
    """Return a UTF-8 byte's class. Continuation bytes have none, so that each character counts."""
    char = chr(byte)
    if byte >= 0x80:
        return _class_of_lead(byte) if byte >= 0xC0 else 0
    if char.isalpha():
        return LETTER[0] if char.islower() else CAPITAL[0]
    if char.isdigit():
        return DIGIT[0]
    return {" ": SPACE[0], "\t": SPACE[0], "\n": LINE[0], "\r": LINE[0]}.get(char, MARK[0])


def _class_of_lead(byte: int) -> int:
    if 0xE3 <= byte <= 0xED:  # kana, CJK, Hangul
        return WIDE[0]
    if 0xC3 <= byte <= 0xE1:  # Latin with accents, Greek, Cyrillic, Arabic, Indic scripts
        return FOREIGN[0]
    return SYMBOL[0]


_CLASSES = bytes(_class_of(byte) for byte in range(256))
_WORD_STARTS = bytes.maketrans(CAPITAL, LETTER)


class Measure(Struct, frozen=True, array_like=True, gc=False):
    """Counts by class of characters. They are stored by position, so add fields only at the end."""

    spaced: int = 0  # words after a space, of which most cost one token
    joined: int = 0  # words after anything else: parts of names, paths, markup
    letters: int = 0  # ASCII letters, because long words cost more tokens
    humps: int = 0  # capitals after a lowercase letter, where tokenizers split camelCase
    digits: int = 0
    numbers: int = 0  # runs of digits
    marks: int = 0  # runs of punctuation
    gaps: int = 0  # runs of spaces not followed by a word: indentation, columns
    lines: int = 0  # runs of line ends
    wide: int = 0  # Chinese, Japanese and Korean characters
    foreign: int = 0  # letters of other scripts, and accented Latin letters
    symbols: int = 0  # dashes, arrows, boxes, emoji
    unseen: int = 0  # bytes of thinking that the provider summarizes or hides
    blocks: int = 0  # blocks of text or thinking
    calls: int = 0  # number of tool calls, because each has framing tokens
    results: int = 0
    media_tokens: int = 0

    def __add__(self, other: "Measure") -> "Measure":
        return Measure(
            self.spaced + other.spaced,
            self.joined + other.joined,
            self.letters + other.letters,
            self.humps + other.humps,
            self.digits + other.digits,
            self.numbers + other.numbers,
            self.marks + other.marks,
            self.gaps + other.gaps,
            self.lines + other.lines,
            self.wide + other.wide,
            self.foreign + other.foreign,
            self.symbols + other.symbols,
            self.unseen + other.unseen,
            self.blocks + other.blocks,
            self.calls + other.calls,
            self.results + other.results,
            self.media_tokens + other.media_tokens,
        )

    def __sub__(self, other: "Measure") -> "Measure":
        # This is slower than the addition above, but differences are rare.
        return Measure(*map(sub, structs.astuple(self), structs.astuple(other)))


NOTHING = Measure()
_ONE_BLOCK = Measure(blocks=1)
_ONE_CALL = Measure(calls=1)
_ONE_RESULT = Measure(results=1)


def measure_text(text: str) -> Measure:
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES)
    if len(classes) <= CHUNK_BYTES:
        return _count(classes, text.isascii())
    chunks = (classes[i : i + CHUNK_BYTES] for i in range(0, len(classes), CHUNK_BYTES))
    return sum((_count(chunk, text.isascii()) for chunk in chunks), NOTHING)


def _count(classes: bytes, is_ascii: bool) -> Measure:
    """Count letters and digits individually, and runs of everything else."""
    number = int.from_bytes(classes, "big")
    starts = number ^ (number & (number >> 8))
    runs = starts.to_bytes(len(classes), "big").translate(_WORD_STARTS, b"\0").count
    spaced = runs(SPACE + LETTER)
    return Measure(
        spaced,
        runs(LETTER) - spaced,
        classes.count(LETTER) + classes.count(CAPITAL),
        runs(HUMP),
        classes.count(DIGIT),
        runs(DIGIT),
        runs(MARK),
        runs(SPACE) - spaced,
        runs(LINE),
        0 if is_ascii else runs(WIDE),
        0 if is_ascii else runs(FOREIGN),
        0 if is_ascii else runs(SYMBOL),
    )


def measure_thinking(text: str, signature_chars: int = 0) -> Measure:
    """Measure thinking at its real size. If the text is a summary, the signature shows the size."""
    kept_bytes = (signature_chars - SIGNATURE_FRAME_CHARS) * 3 // 4
    unseen = max(0, kept_bytes - len(text.encode("utf-8", "surrogatepass")))
    return measure_text(text) + Measure(unseen=unseen, blocks=1)


def measure_call(name: str, input_json: str) -> Measure:
    return measure_text(name + input_json) + _ONE_CALL


def measure_json(value: JsonObject) -> Measure:
    return measure_text(msgspec.json.encode(value).decode())


def measure_result(text: str) -> Measure:
    return measure_text(text) + _ONE_RESULT


def measure_content(content: Iterable[Block] | ResultContent) -> Measure:
    if isinstance(content, str):
        return measure_result(content)
    return sum(map(measure_block, content), NOTHING)


def measure_block(block: Block) -> Measure:
    match block:
        case Text(text=text):
            return measure_text(text) + _ONE_BLOCK
        case Thinking(thinking=text, signature=signature):
            return measure_thinking(text, len(signature))
        case RedactedThinking(data=data):
            return measure_thinking("", len(data))
        case ToolUse(name=name, input=data):
            return measure_call(name, msgspec.json.encode(data).decode())
        case ToolResult(content=str(text)):
            return measure_result(text)
        case ToolResult(content=blocks):
            return measure_content(blocks) + _ONE_RESULT
        case Image():
            return Measure(media_tokens=IMAGE_TOKENS)
        case Document(source={"type": "text", "data": str(text)}):
            return measure_text(text) + _ONE_BLOCK
        case Document(source=source):
            return Measure(media_tokens=PAGE_TOKENS * count_pages(source))
        case Opaque(raw=raw):
            return measure_json(raw)


_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PACKED = re.compile(rb"/ObjStm.*?stream\r?\n", re.DOTALL)


def count_pages(source: JsonObject) -> int:
    """Count the page objects of a PDF in base64. Any other document counts as one page."""
    data = source.get("data")
    if source.get("type") != "base64" or not isinstance(data, str) or len(data) > PDF_CHARS:
        return 1
    try:
        pdf = b64decode(data)
    except ValueError:
        return 1
    # Since PDF 1.5, compressed streams may contain page objects.
    packed = (_unpack(pdf, found.end()) for found in _PACKED.finditer(pdf))
    return max(1, sum(len(_PAGE.findall(part)) for part in (pdf, *packed)))


def _unpack(pdf: bytes, start: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(pdf[start : start + CHUNK_BYTES], CHUNK_BYTES)
    except zlib.error:
        return b""
