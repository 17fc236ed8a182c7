"""Parts: colliding fields, blocks without a counterpart, images as URLs."""

import pytest

from longhold.core.messages import Opaque, Text
from longhold.core.wire.messages import data_url, extra_of, source_of, unwrap, with_extra, wrap

KNOWN = frozenset({"type", "id"})


@pytest.mark.parametrize(
    "extra",
    [None, {"a": 1}, {"id": 2}, {"extra": 3}, {"extra": {"a": 1}}, {"a": None, "id": {}, "extra": []}],
)  # fmt: skip
def test_unknown_fields_come_back_whatever_they_are_called(extra: dict[str, object] | None):
    record = with_extra({"type": "t", "id": "own"}, extra, KNOWN)
    assert (record["type"], record["id"]) == ("t", "own")
    assert extra_of(record, KNOWN) == extra


def test_a_marker_for_the_cache_is_no_content():
    assert extra_of({"type": "t", "cache_control": {}}, KNOWN) is None


@pytest.mark.parametrize("block", [Opaque(raw={"type": "odd"}), Text(text="x", extra={"a": 1})])
def test_a_wrapped_block_comes_back(block: Opaque | Text):
    assert unwrap(wrap(block)) == block


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "image/png", "data": "aGk="},
        {"type": "url", "url": "https://example.com/a.png"},
    ],
)
def test_a_source_comes_back_from_its_url(source: dict[str, str]):
    url = data_url(source)
    assert url is not None and source_of(url) == source


@pytest.mark.parametrize(
    "source",
    [
        {"type": "file", "file_id": "f"},
        {"type": "url", "url": "data:image/png;base64,aGk="},
        {"type": "base64", "media_type": "a;b", "data": "aGk="},
        {"type": "base64", "media_type": "image/png", "data": "aGk=", "more": 1},
    ],
)
def test_a_source_that_a_url_cannot_tell_has_none(source: dict[str, object]):
    assert data_url(source) is None
