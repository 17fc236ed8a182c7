"""Why the cache missed, as reported in the response."""

import pytest

HI = {"role": "user", "content": "hi"}
TOOL = {"name": "Read", "input_schema": {"type": "object"}}
BASE = {"messages": [HI], "system": "be brief", "tools": [TOOL]}


def reason(service, previous, **ask):
    """The reason a request gets when it names an earlier response."""
    made = service.create(**{**BASE, **ask}, diagnostics={"previous_message_id": previous})
    return made["diagnostics"] and made["diagnostics"]["cache_miss_reason"]


def first(service):
    """A first request, opting in."""
    return service.create(**BASE, diagnostics={"previous_message_id": None})["id"]


def test_without_divergence_there_is_nothing_to_tell(api):
    service = api()
    longer = [HI, {"role": "assistant", "content": "yes"}, HI]
    assert reason(service, first(service), messages=longer) is None
    assert "diagnostics" not in service.create(**BASE)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"model": "claude-opus-4-8"}, "model_changed"),
        ({"speed": "fast"}, "model_changed"),
        ({"tools": []}, "tools_changed"),
        ({"system": "be long"}, "system_changed"),
        ({"messages": [{"role": "user", "content": "hello"}]}, "messages_changed"),
    ],
)
def test_the_earliest_difference_is_named(api, change, kind):
    service = api()
    found = reason(service, first(service), **change)
    assert found["type"] == kind
    assert found["cache_missed_input_tokens"] > 0


def test_other_differences_are_unavailable(api):
    service = api()
    found = reason(service, first(service), tool_choice={"type": "none"})
    assert found == {"type": "unavailable"}


def test_unknown_and_foreign_ids_are_not_found(api):
    service = api()
    missing = {"type": "previous_message_not_found"}
    assert reason(service, "msg_nobody") == missing
    assert reason(service, first(service), workspace="other") == missing
