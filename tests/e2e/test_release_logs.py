"""Logs of earlier releases give the same view as then, and can be continued.

Each is a real session of its release, ended during a tool call, with directory names replaced and a
few entries appended by the release's own code. The hashes are from the release too.
"""

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

import longhold
from longhold.core.log import load
from longhold.core.log.entries import (
    Asked,
    Cleared,
    Collapsed,
    Compacted,
    Dropped,
    Forked,
    Noted,
    Pinned,
    Redone,
    Restored,
    Spilled,
    Undone,
)
from longhold.core.messages import message_to_wire
from longhold.core.messages.rules import violations
from longhold.core.settings import home
from longhold.core.view import fold, fold_stepwise
from longhold.core.view.items import NO_RESULT

RELEASES = Path(__file__).parents[1] / "fixtures" / "releases"

VIEWS = {"0.1.0": "247d9bf543d857f84c28bcc97aa83242e8eae57d06f245ffb6a3a493fbc2c7a1"}
"""Of the messages after each entry, as they are sent and as they are seen."""
REQUESTS = {"0.1.0": "660cd308079c8c496702cea9b3672677c6cb1c34a474e031dde71c3b295713fd"}
"""Of the request that was prepared when the session went on."""

UNANSWERED = {"0.1.0": b"No result was recorded: the tool was interrupted before it finished."}
"""What stood for a result that was not there yet; it never stays, since a resumed session has one."""

KINDS = {Spilled, Cleared, Collapsed, Compacted, Restored, Pinned, Undone, Redone}
KINDS |= {Noted, Forked, Dropped, Asked}


def marked(request):
    return [block for block in request.kwargs["system"] if "cache_control" in block]


def wire(messages):
    return msgspec.json.encode([message_to_wire(message) for message in messages])


@pytest.mark.parametrize("release", VIEWS)
def test_every_view_of_the_log_is_the_one_it_was(release):
    loaded = load(RELEASES / f"{release}.jsonl")
    assert loaded.damage == []
    assert {type(entry) for entry in loaded.entries} >= KINDS
    seen = hashlib.sha256()
    for view in fold_stepwise(loaded.entries):
        for messages in (view.messages(), view.render_seen()):
            seen.update(wire(messages).replace(NO_RESULT.encode(), UNANSWERED[release]))
    assert seen.hexdigest() == VIEWS[release]


@pytest.mark.parametrize("release", REQUESTS)
@pytest.mark.files
async def test_the_session_goes_on_with_the_request_it_would_have_sent(release):
    project = home() / "projects" / "shop"
    project.mkdir(parents=True)
    shutil.copy(RELEASES / f"{release}.jsonl", project / "release.jsonl")
    before = fold(load(project / "release.jsonl").entries)
    session = longhold.Session.resume("release")
    session.user("Go on")
    request = await session.prepare()
    assert violations(session.view.messages()) == []
    assert (
        request.kwargs["messages"][0]["content"][0]
        == message_to_wire(before.messages()[0])["content"][0]
    )
    # The session paused since its release, so the system prompt is now kept for an hour.
    assert {block["cache_control"].pop("ttl") for block in marked(request)} == {"1h"}
    sent = msgspec.json.encode(request.kwargs, order="sorted")
    assert hashlib.sha256(sent).hexdigest() == REQUESTS[release]
    session.close()
    assert fold(load(project / "release.jsonl").entries).messages() == session.view.messages()
