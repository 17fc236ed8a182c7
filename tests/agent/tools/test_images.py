"""Images are recognised by their bytes."""

import struct

import pytest

from longhold.agent.tools.read import explain_rejection, image_block, media_type_of, size_of

GIF = b"GIF89a" + struct.pack("<HH", 20, 10)
JPEG = (
    b"\xff\xd8\xff\xe0"
    + struct.pack(">H", 16)
    + b"J" * 14
    + b"\xff\xc0"
    + struct.pack(">HBHH", 17, 8, 480, 640)
    + b"\0" * 12
)


@pytest.mark.parametrize(
    ("content", "kind", "size"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 30, 40), "image/png", (30, 40)),
        (GIF, "image/gif", (20, 10)),
        (JPEG, "image/jpeg", (640, 480)),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", (0, 0)),
        (b"\xff\xd8\xff", "image/jpeg", (0, 0)),
        (b"text", "", (0, 0)),
    ],
)
def test_kind_and_size_are_read_from_the_header(content, kind, size):
    assert (media_type_of(content), size_of(content)) == (kind, size)


def test_a_picture_with_too_long_a_side_is_not_shown():
    wide = b"GIF89a" + struct.pack("<HH", 9_000, 10)
    assert explain_rejection(wide) == "it is 9,000 by 10 pixels and a side may have 8,000"
    assert explain_rejection(GIF) == ""


def test_the_block_is_what_a_provider_takes():
    assert image_block(b"GIF89a").source == {
        "type": "base64",
        "media_type": "image/gif",
        "data": "R0lGODlh",
    }
