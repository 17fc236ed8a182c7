"""The user's own system prompt, read from a file."""

import click
import pytest

from longhold.cli.agent_options import AgentOptions


def read_system(file, resume):
    chosen = AgentOptions(
        model="", base_url="", offline=False, resume=resume, mode=None, system=file
    )
    return chosen.system_prompt()


def test_the_file_is_read_as_text(tmp_path):
    (tmp_path / "s.md").write_bytes(b"\xef\xbb\xbf Be brief.\n")
    assert read_system(tmp_path / "s.md", "") == "Be brief."
    assert read_system(None, "") == ""


@pytest.mark.parametrize(
    ("content", "resume", "said"),
    [
        (b"x", "newest", "others keep their prompt"),
        (b" \n", "", "it is empty"),
        (b"\xff", "", "codec"),
        (None, "", "No such file"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(tmp_path, content, resume, said):
    if content is not None:
        (tmp_path / "s.md").write_bytes(content)
    with pytest.raises(click.UsageError, match=said):
        read_system(tmp_path / "s.md", resume)
