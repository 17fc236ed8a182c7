"""Images a model can take: recognised by their first bytes, refused when too large.

Nothing is decoded or scaled: that needs a library we do not depend on.
"""

import base64
import struct

from holdfast.messages import Image

IMAGE_BYTES = 3_750_000
"""Base64 makes it 5 MB, the most a provider takes for one picture."""
IMAGE_SIDE_PIXELS = 8_000
"""A picture with a longer side has the whole request rejected."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type_of(content: bytes) -> str:
    """Return the media type of a supported image, or ""."""
    webp = "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else ""
    return next((name for magic, name in _MAGIC if content.startswith(magic)), webp)


def image_block(content: bytes) -> Image:
    source = {
        "type": "base64",
        "media_type": media_type_of(content),
        "data": base64.b64encode(content).decode("ascii"),
    }
    return Image(source=source)


def why_not_shown(content: bytes) -> str:
    """Return why a provider would reject this image, or ""."""
    if len(content) > IMAGE_BYTES:
        return f"it has {len(content):,} bytes and {IMAGE_BYTES:,} are allowed"
    width, height = size_of(content)
    if max(width, height) > IMAGE_SIDE_PIXELS:
        return f"it is {width:,} by {height:,} pixels and a side may have {IMAGE_SIDE_PIXELS:,}"
    return ""


def size_of(content: bytes) -> tuple[int, int]:
    """Read width and height from an image's header; zeros if they cannot be found."""
    try:
        match media_type_of(content):
            case "image/png":
                return struct.unpack(">II", content[16:24])
            case "image/gif":
                return struct.unpack("<HH", content[6:10])
            case "image/jpeg":
                return _jpeg_size(content)
            case _:
                return 0, 0
    except (struct.error, IndexError):
        return 0, 0


def _jpeg_size(content: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(content):
        marker = content[place + 1]
        length, height, width = struct.unpack(">HxHH", content[place + 2 : place + 9])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return width, height
        place += 2 + length
    return 0, 0
