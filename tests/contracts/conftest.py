"""What each suite checks: the implementation that an option names, or Longhold's own parts."""

import asyncio
import inspect
import json
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from longhold.core.log.store import FileStore
from longhold.core.log.stores import open_store
from longhold.core.models.registry import open_model
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import GatewaySettings, StoreSettings
from longhold.core.settings.installation import load_plugins, make_plugins

SCRIPT = "text: One.\n---\nthink: Hm.\ntext: Two.\n---\ntool: Read {}\n---\ntext: Four."
MESSAGES = [
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
    {"role": "user", "content": "And again."},
    {"role": "assistant", "content": [{"type": "text", "text": "Hi, again."}]},
]
STAGES = ("spill", "snip", "clear", "collapse", "compact")


def pytest_generate_tests(metafunc):
    """Run a suite once for each part of Longhold, or once for the implementation that is named."""
    options = metafunc.config.option

    def run_for(fixture, given, *own):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [given] if given else own, indirect=True)

    is_ours = getattr(metafunc.config, "has_database", False)
    postgres = [pytest.param("postgres", marks=pytest.mark.slow)] if is_ours else []
    run_for("reopened", options.store, "files", *postgres)
    run_for("backends", options.memory, *(postgres or ["none"]))
    run_for("stage", options.stage, *STAGES)
    run_for("sample", options.transcript, "anthropic")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run asynchronous tests, whether or not pytest has a plug-in for them."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def _empty_home(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LONGHOLD_STRICT", "1")  # a request that moves unexplained is an error
    monkeypatch.delenv("LONGHOLD_STORE", raising=False)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def model(request):
    name = request.config.option.model
    opened = open_model(name) if name else ScriptedModel(SCRIPT)
    yield opened
    with suppress(RuntimeError):  # its connections belong to a loop that is closed
        asyncio.run(opened.close())


@pytest.fixture
def tool(request):
    name = request.config.option.tool
    if name:
        return load_plugins("tools", name)[name]
    from longhold.agent.tools.plan import TODO_WRITE

    return TODO_WRITE


@pytest.fixture
def sample(request, tmp_path):
    """The format and a file: of `--transcript NAME=FILE`, or a list of messages."""
    from longhold.insight.transcripts.formats import load_format

    name, _, path = request.param.partition("=")
    if not path:
        path = tmp_path / "list.json"
        path.write_text(json.dumps(MESSAGES))
    return load_format(name), Path(path)


@pytest.fixture
def tenant():
    return secrets.token_hex(8)


@pytest.fixture
def reopened(request, tmp_path, tenant):
    """Open the same place once more, as another process would."""
    opened = []

    def open_again():
        if request.param == "files":
            opened.append(FileStore(tmp_path / "home"))
        else:
            is_ours = request.param == "postgres"
            url = request.getfixturevalue("postgres_url") if is_ours else request.param
            opened.append(open_store(url, StoreSettings(tenant=tenant)))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()


@pytest.fixture
def store(reopened):
    return reopened()


@pytest.fixture
def stage(request):
    """Make the stage for a session, given the session's layers."""
    if request.param in STAGES:
        return lambda layers: getattr(layers, request.param)
    return lambda layers: make_plugins("stages", request.param)[request.param]


@pytest.fixture
def summariser(request, project):
    """A plug-in's, or the model's in a separate call."""
    name = request.config.option.summariser
    if name:
        yield make_plugins("summarisers", name)[name]
        return
    from longhold import Session
    from longhold.core.stages.compact.summary import HEADINGS, SummaryWriter

    written = "\n".join(f"  ## {n}. {title}\n  Done." for n, title in HEADINGS.items())
    script = "\n---\n".join([f"text: A summary.\n{written}"] * 4)
    client = ScriptedModel(script)
    session = Session.open(client.name, client=client, directory=project, window=100_000)
    writer = SummaryWriter(engine=session._engine, ask=session._ask, asked="", is_wanted=True)

    async def summarise(request):
        return (await writer.summarise(request)).text

    yield summarise
    session.close()


@pytest.fixture
def backends(request, tenant, project, tmp_path):
    """Open the memories of a project once more, as another machine would."""
    name = request.param
    if name == "none":
        pytest.skip("Longhold's own memories without a plug-in are in PostgreSQL or local files")
    opened = []

    def open_again(directory=project):
        if name != "postgres":
            return make_plugins("memories", name, directory)[name]
        url = request.getfixturevalue("postgres_url")
        opened.append(open_store(url, StoreSettings(tenant=tenant)))
        return opened[-1].shared(directory).memory

    yield open_again
    for one in opened:
        one.close()


@pytest.fixture
def policy(request):
    name = request.config.option.policy
    if name:
        return make_plugins("policies", name)[name]
    from longhold.gateway.policy import judge_own

    return partial(judge_own, GatewaySettings())
