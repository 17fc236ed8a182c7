"""`@files` in a message: what is attached, what stays a name, and the model's rights."""

import asyncio
from dataclasses import replace

import pytest

from longhold.agent.build import build_agent
from longhold.agent.terminal.mentions import with_mentions
from longhold.core.log.entries import Ran, Said
from longhold.core.messages import Image, text_of
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import load_settings

MODEL = "claude-opus-4-6"
EDIT = """tool: Edit {"file_path": "mast.txt", "old_string": "three", "new_string": "four"}
---
text: Done.
"""


@pytest.fixture
def project(tmp_path):
    place = tmp_path / "project"
    place.mkdir()
    (place / "mast.txt").write_text("three masts\n")
    (place / "main mast.txt").write_text("the main mast\n")
    return place


async def talk(project, words, script="text: Seen.", **options):
    """Say something; return what was made of it, the log, and the second reading of the same."""
    agent = await build_agent(
        ScriptedModel(script, name=MODEL), directory=project, mode="accept_edits", **options
    )
    try:
        mentions = await with_mentions(words, agent)
        async for _ in agent.run(mentions.content, mentions.attached):
            pass
        again = await with_mentions(words, agent)
        return mentions, list(agent.engine.view.history), again
    finally:
        await agent.close()


def test_a_text_file_goes_with_the_message_and_counts_as_read(project):
    words = 'see @mast.txt and @"main mast.txt"'
    mentions, history, again = asyncio.run(talk(project, words))
    said = [entry for entry in history if isinstance(entry, Said)]
    assert [text_of(entry.content) for entry in said if not entry.hidden] == [words]
    attached = "\n".join(text_of(entry.content) for entry in said if entry.hidden)
    assert "[File mast.txt, named in the message above]" in attached
    assert "three masts" in attached
    assert "the main mast" in attached
    assert [line.partition(",")[0] for line in mentions.said] == [
        "mast.txt is attached",
        "main mast.txt is attached",
    ]
    assert "unchanged since you read it" in text_of(again.attached)
    asyncio.run(talk(project, "mend @mast.txt", EDIT))
    assert (project / "mast.txt").read_text() == "four masts\n"


def test_a_file_that_was_only_named_without_the_mark_must_be_read_first(project):
    _, history, _ = asyncio.run(talk(project, "mend mast.txt", EDIT))
    [ran] = [entry for entry in history if isinstance(entry, Ran)]
    assert "has not been read" in text_of(ran.content)


def test_what_is_no_file_or_may_not_be_read_stays_a_name(project, tmp_path):
    (tmp_path / "secret.txt").write_text("hunter2")
    (project / "blob.bin").write_bytes(b"\0\1\2" * 100)
    words = "ask @ada at me@example.org about @. @../secret.txt @blob.bin"
    mentions, _, _ = asyncio.run(talk(project, words))
    assert mentions.content == words
    assert mentions.attached == ()
    assert "secret.txt is not sent: allow reading it first" in mentions.said
    assert any("blob.bin is not sent" in line and "binary" in line for line in mentions.said)


def test_what_is_too_long_is_left_to_the_model_to_read(project):
    (project / "long.txt").write_text("many words here\n" * 1_500)
    settings = load_settings(project)
    mentions, _, _ = asyncio.run(talk(project, "@long.txt @long.txt", settings=settings))
    assert mentions.said[0].startswith("long.txt is attached, ")
    assert len(mentions.said) == 1
    small = replace(settings, terminal=replace(settings.terminal, mention_tokens=2_000))
    mentions, _, _ = asyncio.run(talk(project, "@long.txt @mast.txt", settings=small))
    assert "the model can read parts of it" in mentions.said[0]
    assert mentions.said[1].startswith("mast.txt is attached")


def test_images_go_into_the_message_unless_they_are_too_large(project):
    (project / "small.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    (project / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 4_000_000)
    mentions, _, _ = asyncio.run(talk(project, "see @large.png"))
    assert mentions.content == "see @large.png"
    assert mentions.said == (
        "large.png is not sent as an image: it has 4,000,008 bytes and 3,750,000 are allowed",
    )
    mentions, _, _ = asyncio.run(talk(project, "see @small.png"))
    assert isinstance(mentions.content[1], Image)
