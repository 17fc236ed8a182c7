"""Read shows files and reports missing ones."""

import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools.read import page_of_text
from longhold.core.messages import Image
from longhold.core.tools.context import FILE_BYTES, ToolContext

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 2) + b"rest"


async def test_lines_come_numbered(tool_context, said):
    (tool_context.root / "a.txt").write_text("one\n\nthree\n")
    assert await said("Read", file_path="a.txt") == "     1\tone\n     2\t\n     3\tthree"


async def test_a_range_of_lines_says_how_to_go_on(tool_context, said):
    (tool_context.root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    assert await said("Read", file_path="a.txt", offset=4, limit=2) == (
        "     4\tline 4\n     5\tline 5\n[Lines 4 to 5 of 10; continue with offset 6.]"
    )


async def test_no_more_than_two_thousand_lines_at_once(tool_context, said):
    (tool_context.root / "a.txt").write_text("x\n" * 5_000)
    shown = await said("Read", file_path="a.txt", limit=4_000)
    assert shown.endswith("  2000\tx\n[Lines 1 to 2,000 of 5,000; continue with offset 2001.]")


async def test_no_more_than_the_token_budget_at_once(tool_context, said):
    (tool_context.root / "a.txt").write_text("some words of prose " * 40 + "\n", encoding="utf-8")
    line = (tool_context.root / "a.txt").read_text()
    (tool_context.root / "a.txt").write_text(line * 1_500)
    shown = await said("Read", file_path="a.txt")
    assert 20_000 < tool_context.count_tokens(shown) <= 25_100
    assert "of 1,500; continue with offset" in shown


async def test_reading_in_pages_brings_every_line_once(tool_context, said):
    lines = [f"{n} " + "word " * (n % 90) for n in range(3_000)]
    (tool_context.root / "a.txt").write_text("\n".join(lines))
    seen: list[str] = []
    while len(seen) < len(lines):
        page = await said("Read", file_path="a.txt", offset=len(seen) + 1)
        seen += [row.partition("\t")[2] for row in page.split("\n") if "\t" in row]
    assert seen == lines


async def test_a_long_line_is_cut(tool_context, said):
    (tool_context.root / "a.txt").write_text("x" * 5_000 + "\n")
    shown = await said("Read", file_path="a.txt")
    assert shown == "     1\t" + "x" * 2_000 + "… [3,000 more characters]"


async def test_an_unchanged_file_is_not_shown_twice(tool_context, said):
    file = tool_context.root / "a.txt"
    file.write_text("".join(f"{n}\n" for n in range(1, 10)))
    await said("Read", file_path="a.txt", limit=5)
    assert "unchanged" in await said("Read", file_path="a.txt", offset=2, limit=3)
    assert "     6\t6" in await said("Read", file_path="a.txt", offset=4, limit=3)
    tool_context.files.disarm(file)
    assert "     1\t1" in await said("Read", file_path="a.txt", limit=5)


async def test_a_changed_file_is_shown_again(tool_context, said):
    file = tool_context.root / "a.txt"
    file.write_text("old")
    await said("Read", file_path="a.txt")
    file.write_text("new")
    assert await said("Read", file_path="a.txt") == "     1\tnew"


async def test_an_edited_file_is_shown_again(tool_context, said):
    (tool_context.root / "a.txt").write_text("old")
    await said("Read", file_path="a.txt")
    await said("Edit", file_path="a.txt", old_string="old", new_string="new")
    assert await said("Read", file_path="a.txt") == "     1\tnew"


async def test_an_empty_file_and_an_offset_past_the_end_are_told(tool_context, said):
    (tool_context.root / "empty").write_text("")
    (tool_context.root / "two").write_text("1\n2\n")
    assert await said("Read", file_path="empty") == "[The file is empty.]"
    assert await said("Read", file_path="two", offset=9) == (
        "[The file has 2 lines; there is no line 9.]"
    )


async def test_windows_lines_and_marks_are_not_shown(tool_context, said):
    (tool_context.root / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert await said("Read", file_path="a.txt") == "     1\tone\n     2\ttwo"


async def test_a_missing_file_is_told_with_what_is_near(tool_context, refused):
    (tool_context.root / "settings.py").write_text("")
    reason = await refused("Read", file_path="setings.py")
    assert "does not exist" in reason
    assert "Did you mean settings.py?" in reason


async def test_a_link_to_nowhere_is_told_as_such(tool_context, refused):
    (tool_context.root / "link").symlink_to("nowhere")
    assert "is a link to nowhere" in await refused("Read", file_path="link")


async def test_a_circle_of_links_is_told(tool_context, refused):
    (tool_context.root / "a").symlink_to("b")
    (tool_context.root / "b").symlink_to("a")
    assert "cannot be read" in await refused("Read", file_path="a")


async def test_a_directory_a_pipe_and_a_device_are_refused(tool_context, refused):
    os.mkfifo(tool_context.root / "pipe")
    assert "is a directory" in await refused("Read", file_path=".")
    assert "not a file with content" in await refused("Read", file_path="pipe")
    assert "not a file with content" in await refused("Read", file_path="/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_an_unreadable_file_is_told(tool_context, refused):
    (tool_context.root / "a").write_text("x")
    (tool_context.root / "a").chmod(0)
    assert "permission denied" in await refused("Read", file_path="a")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no such file here")
async def test_a_file_that_fails_while_it_is_read_is_told(refused):
    assert await refused("Read", file_path="/proc/self/mem") == "Read failed: input/output error."


async def test_a_binary_file_is_refused_with_advice(tool_context, refused):
    (tool_context.root / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    assert "binary file of 7 bytes" in await refused("Read", file_path="a.bin")


async def test_a_picture_comes_as_a_picture(tool_context, use):
    (tool_context.root / "a.dat").write_bytes(PNG)
    outcome = await use("Read", file_path="a.dat")
    (image,) = outcome.content
    assert isinstance(image, Image)
    assert image.source["media_type"] == "image/png"


async def test_a_picture_no_provider_takes_is_refused(tool_context, refused):
    (tool_context.root / "a.png").write_bytes(PNG + b"x" * 4_000_000)
    assert "are allowed" in await refused("Read", file_path="a.png")


async def test_a_notebook_is_shown_as_it_is_edited(tool_context, said):
    cells = [{"cell_type": "code", "source": ["print(1)"]}]
    (tool_context.root / "a.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    shown = (await said("Read", file_path="a.ipynb")).split("\n")
    assert shown[5] == '     6\t    "print(1)"'


async def test_a_huge_file_is_for_other_programs(tool_context, refused):
    with (tool_context.root / "huge.log").open("wb") as out:
        out.truncate(FILE_BYTES + 1)
    assert "`tail` in Bash" in await refused("Read", file_path="huge.log", limit=3)


async def test_a_long_file_is_read_from_any_line(tool_context, said):
    (tool_context.root / "long.log").write_bytes(b"first\n" + b"x" * 9_000_000 + b"\nthird\r\n4th")
    shown = await said("Read", file_path="long.log", limit=3)
    first, long, third, more = shown.split("\n")
    assert (first, third) == ("     1\tfirst", "     3\tthird")
    assert long.endswith(f"… [{9_000_000 - 2_000:,} more characters]")
    assert more == "[Lines 1 to 3 of 4; continue with offset 4.]"
    assert await said("Read", file_path="long.log", offset=4) == "     4\t4th"
    assert "there is no line 5" in await said("Read", file_path="long.log", offset=5)


@given(st.integers(1, 400), st.integers(1, 300))
def test_a_page_keeps_its_budget_and_has_at_least_one_line(tmp_path_factory, count, budget):
    here = tmp_path_factory.mktemp("pages")
    place = ToolContext(
        root=here, home=here, scratch=here, count_tokens=len, window_tokens=lambda: 8 * budget
    )
    page = page_of_text("words of prose\n" * count, 1, 1_000, place)
    body = page.text.partition("\n[")[0]
    assert len(page.lines) == 1 or len(body) <= budget
    assert len(page.lines) >= 1
