"""What a text consists of, counted once, so that its tokens can be estimated for any model.

A `Measure` is a few integers that add up and are small enough to be in every log line; what each
unit weighs for a model is in `view.tokens`. Counting runs over bytes inside C calls: each
character becomes the bits of its class, the text becomes one large number, and the bits its left
neighbour does not have are where a run of one class begins.
"""

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
"""What a picture of the largest size an API keeps (1.15 megapixels at 750 pixels each) costs."""
DOCUMENT_TOKENS = 2_000
"""A flat guess for a file whose pages cannot be counted from outside."""
SIGNATURE_FRAME_CHARS = 240
"""A signature of an empty thought is this long; the rest is the thought itself, in base64."""
CHUNK_BYTES = 1 << 18
"""Texts are counted in pieces of this size, to bound memory; a run cut there counts twice."""

LETTER, HUMP, DIGIT, MARK, SPACE, LINE, WIDE, FOREIGN = (bytes((1 << bit,)) for bit in range(8))
CAPITAL = bytes((LETTER[0] | HUMP[0],))
"""A letter that after a small one leaves its second bit, and after another capital none."""
SYMBOL = bytes((WIDE[0] | FOREIGN[0],))
"""Both bits survive: what stands left of a character outside ASCII has neither."""


def _class_of(byte: int) -> int:
    """Return a UTF-8 byte's class; bytes inside a character have none, so each character begins a run."""
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
    """Counts of what tokenizers cut by. The order is a format on disk: it only grows at the end."""

    spaced: int = 0
    """Words after a space: most cost one token, space included."""
    joined: int = 0
    """Words after anything else: parts of names, paths, markup."""
    letters: int = 0
    """ASCII letters: long words cost more than short ones."""
    humps: int = 0
    """Capitals after a small letter: where a tokenizer cuts camelCase."""
    digits: int = 0
    numbers: int = 0
    """Runs of digits."""
    marks: int = 0
    """Runs of punctuation."""
    gaps: int = 0
    """Runs of blanks that no word follows: indentation, columns."""
    lines: int = 0
    """Runs of line ends."""
    wide: int = 0
    """Characters of Chinese, Japanese and Korean."""
    foreign: int = 0
    """Letters of other scripts, and Latin ones with accents."""
    symbols: int = 0
    """Dashes, arrows, boxes, emoji."""
    unseen: int = 0
    """Bytes of thought that the provider keeps and shows only in summary, or not at all."""
    blocks: int = 0
    """Blocks of text or thinking."""
    calls: int = 0
    """Tool calls, for the frame around each."""
    results: int = 0
    """Tool results, for the frame around each."""
    media_tokens: int = 0
    """Nominal tokens of images and documents."""

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
        # Spelt out as above it would be twice as fast, which matters only for sums.
        return Measure(*map(sub, structs.astuple(self), structs.astuple(other)))


NOTHING = Measure()
_ONE_BLOCK = Measure(blocks=1)
_ONE_CALL = Measure(calls=1)
_ONE_RESULT = Measure(results=1)


def measure_text(text: str) -> Measure:
    """Count a text's classes, without the frame of the block it stands in."""
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES)
    if len(classes) <= CHUNK_BYTES:
        return _count(classes, text.isascii())
    chunks = (classes[i : i + CHUNK_BYTES] for i in range(0, len(classes), CHUNK_BYTES))
    return sum((_count(chunk, text.isascii()) for chunk in chunks), NOTHING)


def _count(classes: bytes, is_ascii: bool) -> Measure:
    """Count letters and digits one by one, everything else where its runs begin."""
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
    """Count a thought as the model keeps it; where the text is a summary, the signature tells its size."""
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
    """Count blocks; a bare string is taken for a tool result."""
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
        case Document():
            return Measure(media_tokens=DOCUMENT_TOKENS)
        case Opaque(raw=raw):
            return measure_json(raw)
