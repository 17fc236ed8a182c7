"""Lifetimes and beta headers: chosen once, by the source of the request."""

import pytest

from longhold.core.log.entries import Framed, Section
from longhold.core.models.capabilities import capabilities
from longhold.core.request.lifetime import betas_for, lifetime_for
from longhold.core.request.request import DIAGNOSIS, GLOBAL_SCOPE, Caching, build
from longhold.core.settings import CacheSettings, Settings
from longhold.session.session import Session


@pytest.mark.parametrize(
    ("source", "lifetime"), [("chat", "1h"), ("run", "5m"), ("sdk", "5m"), ("agent:explore", "5m")]
)
def test_only_a_person_gets_an_hour(source, lifetime):
    assert lifetime_for(source, CacheSettings()) == lifetime


def test_the_list_of_sources_and_the_lifetime_can_be_set():
    assert lifetime_for("agent:x", CacheSettings(long_sources="chat, agent:*")) == "1h"
    assert lifetime_for("run", CacheSettings(lifetime="1h")) == "1h"
    assert lifetime_for("chat", CacheSettings(lifetime="5m")) == "5m"


def test_a_provider_is_asked_for_its_word_only_where_it_has_one():
    asked = CacheSettings(diagnose=True)
    assert betas_for(capabilities("claude-sonnet-5-5"), asked) == (DIAGNOSIS,)
    assert betas_for(capabilities("gpt-6-sol"), asked) == ()
    assert betas_for(capabilities("claude-sonnet-5-5"), CacheSettings()) == ()


async def test_what_was_chosen_holds_whatever_the_settings_say_later(tmp_path):
    chat = Session.open(model="claude-sonnet-5-5", system="hi", directory=tmp_path, source="chat")
    with chat as session:
        session.user("one")
        first = (await session.prepare()).kwargs
    later = Settings(cache=CacheSettings(lifetime="5m", diagnose=True))
    with Session.resume(chat.id, settings=later) as session:
        again = (await session.prepare()).kwargs
    assert first["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert again == first


async def test_whether_anything_is_kept_is_chosen_once_too(tmp_path):
    with Session.open(model="claude-sonnet-5-5", system="hi", directory=tmp_path) as session:
        session.user("one")
        first = (await session.prepare()).kwargs
    off = Settings(cache=CacheSettings(on=False))
    with Session.resume(session.id, settings=off) as later:
        assert (await later.prepare()).kwargs == first
        assert later._engine.prefix().frame.cached
    with Session.open(
        model="claude-sonnet-5-5", system="hi", settings=off, directory=tmp_path
    ) as without:
        without.user("one")
        assert "cache_control" not in str((await without.prepare()).kwargs)


def test_the_scope_for_everybody_is_asked_for_where_it_exists():
    able = capabilities("simulated/claude-sonnet-5-5")
    assert betas_for(able, CacheSettings()) == (GLOBAL_SCOPE,)
    frame = Framed(
        sections=(Section(name="a", text="a", scope="global"), Section(name="b", text="b")),
        betas=(GLOBAL_SCOPE,),
    )
    said = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    here = build(
        frame, said, model="simulated/claude-sonnet-5-5", max_output_tokens=10, caching=Caching()
    )
    assert here.kwargs["system"][0]["cache_control"]["scope"] == "global"
    there = build(frame, said, model="claude-sonnet-5-5", max_output_tokens=10, caching=Caching())
    assert "scope" not in there.kwargs["system"][0]["cache_control"]
    assert there.betas == ()


def test_what_an_organisation_shares_is_marked_without_a_scope():
    scopes = ("global", "global", "organisation", "none", "none")
    sections = tuple(Section(name=str(i), text="x", scope=s) for i, s in enumerate(scopes))
    frame = Framed(sections=sections, betas=(GLOBAL_SCOPE,))
    said = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    request = build(
        frame, said, model="simulated/claude-sonnet-5-5", max_output_tokens=10, caching=Caching()
    )
    controls = [block.get("cache_control") for block in request.kwargs["system"]]
    plain = {"type": "ephemeral"}
    assert controls == [None, plain | {"scope": "global"}, plain, None, plain]


async def test_after_a_pause_the_system_prompt_is_kept_for_an_hour(chat):
    one = chat()
    await one.ask()
    one.wait(6)
    cold = (await one.ask()).usage
    one.wait(6)
    held = (await one.ask()).usage
    assert cold.cache_read_input_tokens == 0
    assert held.cache_read_input_tokens == cold.cache_creation.ephemeral_1h_input_tokens > 2_000
    # The messages keep their five minutes, because each of them is written only once.
    assert held.cache_creation.ephemeral_1h_input_tokens == 0
    assert [(broke.cause, broke.first_moved) for broke in one.breaks] == [("lifetime_5m", "")] * 2


async def test_a_lifetime_that_the_user_set_is_kept_after_a_pause(chat):
    one = chat(settings=Settings(cache=CacheSettings(lifetime="5m")))
    for _ in range(3):
        assert (await one.ask()).usage.cache_creation.ephemeral_1h_input_tokens == 0
        one.wait(6)


async def test_without_a_pause_nothing_is_written_for_an_hour(chat):
    one = chat()
    for _ in range(3):
        one.wait(4)
        assert (await one.ask()).usage.cache_creation.ephemeral_1h_input_tokens == 0
    assert sum(isinstance(entry, Framed) for entry in one.view.history) == 1
