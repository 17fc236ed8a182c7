"""Plug-ins that `plugins.use` names: who may name them, and what happens if they fail."""

import pytest

from longhold import Session
from longhold.core.log.entries import Compacted, Configured, Failed
from longhold.core.settings import (
    ClearSettings,
    CompactSettings,
    NotesSettings,
    PluginsSettings,
    Settings,
    WindowSettings,
    home,
    load_settings,
)
from longhold.core.settings.installation import load_plugins, make_plugins
from longhold.errors import ConfigError

SAYS = """
class make:
    async def __call__(self, engine):
        if not any("MARKED" in str(one) for one in engine.view.messages()):
            engine.say("MARKED", hidden=True)
"""
RAISES = "def make():\n    async def broken(engine):\n        1 / 0\n    return broken\n"
SUMMARISES = (
    "def make():\n    async def write(request):\n        return 'SUMMED UP'\n    return write\n"
)
HANGS = "import asyncio\ndef make():\n    return lambda request: asyncio.sleep(60)\n"


def named(*names, **more):
    return Settings(plugins=PluginsSettings(use=" ".join(names)), **more)


def opened(project, settings, **options):
    return Session.open("claude-sonnet-5-5", directory=project, settings=settings, **options)


def test_nothing_is_looked_up_unless_a_plugin_is_named(install):
    install("stages", "mine", "raise RuntimeError('loaded')")
    assert make_plugins("stages", " ") == {}


def test_an_unknown_name_is_an_error_that_lists_the_others(install, tmp_path):
    install("stages", "mine", SAYS)
    with pytest.raises(ConfigError, match="'mein', which is not installed; there are mine"):
        make_plugins("stages", "mine mein")
    with pytest.raises(ConfigError, match="'mein'"):
        opened(tmp_path, named("mein"))


def test_with_none_installed_the_error_says_so():
    with pytest.raises(ConfigError, match="none is installed"):
        make_plugins("stages", "mine")


def test_a_name_serves_every_kind_that_has_it(install):
    install("stages", "mine", SAYS)
    install("summarisers", "mine", SUMMARISES)
    assert list(make_plugins("stages", "mine")) == ["mine"]
    assert list(make_plugins("summarisers", "mine")) == ["mine"]


def test_of_some_kinds_there_is_one(install):
    install("summarisers", "one", SUMMARISES)
    install("summarisers", "two", SUMMARISES)
    with pytest.raises(ConfigError, match="several summarisers: two, one"):
        make_plugins("summarisers", "two one")


@pytest.mark.parametrize(
    ("code", "said"), [("import nothing_here", "loaded"), ("def make(): 1 / 0", "started")]
)
def test_a_named_plugin_that_is_broken_is_an_error(install, code, said):
    install("stages", "mine", code)
    with pytest.raises(ConfigError, match=f"'mine'.* cannot be {said}"):
        make_plugins("stages", "mine")


def test_a_broken_one_of_all_is_left_out_and_told(install):
    install("tools", "broken", "import nothing_here")
    install("tools", "whole", "make = 5")
    told = []
    assert load_plugins("tools", tell=told.append) == {"whole": 5}
    assert "'broken'" in told[0]


def test_a_project_cannot_name_plugins(tmp_path):
    (tmp_path / ".longhold").mkdir()
    (tmp_path / ".longhold" / "settings.toml").write_text('[plugins]\nuse = "mine"\n')
    with pytest.raises(ConfigError, match=r"plugins\.use can only be set by the user"):
        load_settings(tmp_path)


def test_the_user_can(tmp_path):
    (home() / "settings.toml").write_text('[plugins]\nuse = "a-1 b.2"\n')
    assert load_settings(tmp_path).plugins.use == "a-1 b.2"


async def test_a_log_cannot_name_plugins(install, tmp_path):
    install("stages", "mine", SAYS)
    session = opened(tmp_path, named("mine"), id="s")
    session.user("Hello.")
    assert "MARKED" in str((await session.prepare()).kwargs)
    assert all(
        "plugins" not in one.settings for one in session.view.history if isinstance(one, Configured)
    )
    forged = Configured(settings={"plugins": {"use": "mine"}})
    session._engine.record(forged)
    session.close()
    resumed = Session.resume("s", directory=tmp_path)
    assert resumed._engine.settings.plugins.use == ""
    assert resumed._layers.plugins == ()
    resumed.close()


async def test_a_stage_that_fails_does_not_end_the_session(install, tmp_path):
    install("stages", "broken", RAISES)
    install("stages", "mine", SAYS)
    async with opened(tmp_path, named("broken", "mine")) as session:
        session.user("Hello.")
        assert "MARKED" in str((await session.prepare()).kwargs)
        [failed] = [one for one in session.view.history if isinstance(one, Failed)]
        assert "broken" in failed.what
        assert failed.error == "ZeroDivisionError: division by zero"


def reply(number):
    return {
        "id": f"m{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": f"Answer {number}. " * 150}],
        "stop_reason": "end_turn",
    }


async def compacted(project, *names, seconds=5.0, **options):
    """Fill a small window until it is compacted; return the session."""
    settings = named(
        *names,
        window=WindowSettings(limit_tokens=20_000),
        clear=ClearSettings(on=False),
        notes=NotesSettings(on=False),
        compact=CompactSettings(rung_seconds=seconds, **options),
    )
    session = opened(project, settings)
    for number in range(60):
        session.user(f"{number}: what comes next?")
        await session.prepare()
        await session.record(reply(number))
        if any(isinstance(one, Compacted) for one in session.view.history):
            break
    return session


def find(session, kind):
    return next((one for one in session.view.history if isinstance(one, kind)), None)


async def test_a_summariser_writes_the_summary(install, tmp_path):
    install("summarisers", "mine", SUMMARISES)
    session = await compacted(tmp_path, "mine")
    entry = find(session, Compacted)
    assert (entry.rule, entry.by) == ("compact-plugin", "model")
    assert "SUMMED UP" in str(entry.summary)
    assert "(plugin)" in entry.why
    assert find(session, Failed) is None
    session.close()


async def test_without_models_it_writes_none(install, tmp_path):
    install("summarisers", "mine", SUMMARISES)
    session = await compacted(tmp_path, "mine", model=False)
    assert find(session, Compacted).rule == "compact-digest"
    session.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (RAISES, "ZeroDivisionError: division by zero"),
        (SUMMARISES.replace("'SUMMED UP'", "' '"), "it has no text"),
        (SUMMARISES.replace("'SUMMED UP'", "5"), "AttributeError"),
        (HANGS, "no summary arrived within 1 seconds"),
    ],
)
async def test_a_summariser_that_fails_is_replaced_by_the_digest(install, tmp_path, code, said):
    install("summarisers", "mine", code)
    session = await compacted(tmp_path, "mine", seconds=1.0)
    entry, failed = find(session, Compacted), find(session, Failed)
    assert entry.rule == "compact-digest"
    assert failed.what.endswith("plugin")
    assert said in failed.error
    assert any("compact-plugin" in line for line in entry.lost)
    session.close()
