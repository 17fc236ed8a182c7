"""Cases that the naive cache does not cover: scopes, cache edits, and open rules."""

from longhold.core.request.lifetime import seconds_of

LONG = "the cache wants long prompts " * 200
MARK = {"type": "ephemeral"}
HI = {"role": "user", "content": "hi"}
EDITS = ["cache-edits-simulated"]


def system(**control):
    """A marked system prompt."""
    return [{"type": "text", "text": LONG, "cache_control": {**MARK, **control}}]


def read(message):
    """The tokens a response read from the cache."""
    return message["usage"]["cache_read_input_tokens"]


def test_global_entries_are_shared_between_workspaces(api):
    service = api()
    beta = ["cache-scope-simulated"]
    ask = {"system": system(scope="global"), "messages": [HI], "betas": beta}
    service.create(**ask, workspace="one")
    assert read(service.create(**ask, workspace="two")) > 512


def test_global_markers_stay_out_of_messages(api):
    block = {"type": "text", "text": "hi", "cache_control": {**MARK, "scope": "global"}}
    message = {"role": "user", "content": [block]}
    refusal = api().refusal(messages=[message], betas=["cache-scope-simulated"])
    assert "for tools and system only" in refusal.message


def loop(**marks):
    """A tool loop with a long result."""
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": LONG, **marks}
    return [
        HI,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Read."},
    ]


def marked(*blocks):
    """A last user message whose text is marked."""
    return {
        "role": "user",
        "content": [*blocks, {"type": "text", "text": "on", "cache_control": MARK}],
    }


DELETE = {"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": "t1"}]}


def test_cache_edits_take_results_out_without_breaking_the_prefix(api):
    service = api()
    written = service.create(messages=[*loop(), marked()], betas=EDITS)["usage"]
    history = [*loop(cache_reference="t1"), marked(), {"role": "assistant", "content": "ok"}]
    history[-2]["content"][0].pop("cache_control")
    edited = service.create(messages=[*history, marked(DELETE)], betas=EDITS)["usage"]
    deleted = edited["cache_deleted_input_tokens"]
    assert deleted > 1_000
    assert edited["cache_read_input_tokens"] == written["cache_creation_input_tokens"] - deleted
    assert edited["cache_creation_input_tokens"] < 50


def test_pinned_edits_keep_being_counted(api):
    service = api()
    service.create(messages=[*loop(), marked()], betas=EDITS)
    said = [{"role": "user", "content": [TEXT]}, {"role": "assistant", "content": "ok"}]
    edited = {"role": "user", "content": [DELETE, TEXT]}
    history = [*loop(cache_reference="t1"), *said, edited]
    first = service.create(messages=history, betas=EDITS, cache_control=MARK)["usage"]
    longer = [*history, {"role": "assistant", "content": "ok"}, marked()]
    second = service.create(messages=longer, betas=EDITS)["usage"]
    assert first["cache_deleted_input_tokens"] == second["cache_deleted_input_tokens"] > 1_000


TEXT = {"type": "text", "text": "on"}


def test_edits_on_a_dead_cache_delete_nothing(api):
    service = api()
    history = [*loop(cache_reference="t1"), marked(DELETE)]
    usage = service.create(messages=history, betas=EDITS)["usage"]
    assert usage["cache_deleted_input_tokens"] == 0
    assert usage["cache_creation_input_tokens"] > 1_000


def test_edits_need_their_header_and_a_reference(api):
    unknown = api().refusal(messages=[*loop(), marked(DELETE)])
    assert "does not match" in unknown.message
    unnamed = api().refusal(messages=[*loop(), marked(DELETE)], betas=EDITS)
    assert "no `cache_reference` 't1'" in unnamed.message


def reads_after(service, seconds):
    """Write with one hour, read with five minutes after half of it, and again later."""
    ask = {"messages": [HI]}
    service.create(system=system(ttl="1h"), **ask)
    service.simulation.clock.advance(seconds_of("1h") / 2)
    service.create(system=system(), **ask)
    service.simulation.clock.advance(seconds)
    return read(service.create(system=system(), **ask))


def test_a_deferred_tool_is_read_where_a_result_refers_to_it(api):
    search = {"name": "Search", "input_schema": {"type": "object"}}
    later = {"name": "Later", "description": LONG, "input_schema": {"type": "object"}}
    service, ask = api(), {"system": system(), "messages": [HI]}
    first = service.create(**ask, tools=[search])
    deferred = [search, {**later, "defer_loading": True}]
    listed = service.create(**ask, tools=deferred)
    assert read(listed) == first["usage"]["cache_creation_input_tokens"]
    reference = {"type": "tool_reference", "tool_name": "Later"}
    use = {"type": "tool_use", "id": "t", "name": "Search", "input": {}}
    found = {"type": "tool_result", "tool_use_id": "t", "content": [reference]}
    loop = [HI, {"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}]
    loaded = service.create(system=system(), messages=loop, tools=deferred)
    assert read(loaded) == read(listed)
    assert loaded["usage"]["input_tokens"] > len(LONG.split())


def test_a_short_marker_renews_a_long_entry(api):
    most_of_an_hour = 3_500
    assert reads_after(api(), most_of_an_hour) > 512


def test_changed_effort_keeps_the_system_prompt(api):
    ask = {"system": system(), "messages": [HI]}
    service = api()
    service.create(**ask)
    assert read(service.create(**ask, output_config={"effort": "low"})) > 0
