"""The provider of a file's messages, from its first bytes."""

import json

import pytest

from longhold.session.importing.api_messages import provider_of

USER = {"role": "user", "content": "hi"}
CALL = {"role": "assistant", "content": None, "tool_calls": []}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("first", "provider"),
    [
        (encoded([USER]), "anthropic"),
        (encoded([USER, USE]), "anthropic"),
        (encoded([USER, CALL]), "openai"),
        (encoded({"system": "s", "messages": [USER]}), "anthropic"),
        (encoded({"messages": [{"role": "system", "content": "s"}, USER]}), "openai"),
        (encoded({"tools": [{"type": "function"}], "messages": [USER]}), "openai"),
        (encoded({"tools": [{"input_schema": {}}], "messages": [USER]}), "anthropic"),
        (encoded({"messages": [{"role": "system", "content": "s"}, USE]}), "anthropic"),
        (json.dumps([USER, CALL], indent=2).encode(), "openai"),
        (b"\xef\xbb\xbf" + encoded([USER]), "anthropic"),
        (encoded({"longhold": 1, "session": "s"}), None),
        (encoded([1, 2]), None),
        (b"# A heading", None),
        (b"", None),
    ],
)
def test_the_beginning_tells_the_provider(first: bytes, provider: str | None):
    assert provider_of(first) == provider


def test_a_beginning_cut_anywhere_is_enough_once_a_mark_was_seen():
    text = encoded([USER, CALL, {"role": "user", "content": 'she said "tool_use": ' * 50}])
    end = text.index(b"tool_calls") + len('tool_calls": []')
    assert {provider_of(text[:cut]) for cut in range(end, len(text))} == {"openai"}


@pytest.mark.parametrize(
    ("request_", "provider"),
    [
        ({"tools": [{"name": "f", "input_schema": {}}] * 50, "messages": [USER]}, "anthropic"),
        ({"tools": [{"type": "function", "function": {}}] * 50, "messages": [USER]}, "openai"),
    ],
)
def test_a_request_cut_before_its_messages_is_known(request_: object, provider: str):
    assert provider_of(encoded(request_)[:400]) == provider


def test_a_whole_object_without_messages_is_none():
    assert provider_of(encoded({"tools": [], "system": "linux"})) is None


def test_what_stands_inside_a_tools_input_says_nothing():
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"tool_calls": [], "role": "tool"}}
    quoted = json.dumps([CALL])
    messages = [{"role": "user", "content": quoted}, {"role": "assistant", "content": [use]}]
    assert provider_of(encoded(messages)) == "anthropic"
