"""Every test has no network beyond this machine, its own home, and few hypothesis examples.

Recorded transcripts, if any, are next to the repository. A test with the fixture `recorded` runs
once for each of them, or is skipped.
"""

import itertools
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
RECORDED = HERE.parent.parent / "shared" / "data" / "transcripts"

CHILDREN = HERE / "support" / "children"

sys.path[:0] = [str(HERE / "support"), str(HERE)]  # what tests share

import children.sitecustomize  # noqa: E402, F401 - sockets reach loopback and nothing else
import programs  # noqa: E402
from contracts import pytest_addoption  # noqa: E402, F401

EXAMPLES = int(os.environ.get("LONGHOLD_TEST_EXAMPLES", "40"))
"""Of each hypothesis: enough for every day. `make test-all` takes 120; a night, or a change to the
fold, deserves 1,000."""

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "longhold", max_examples=EXAMPLES, deadline=None, suppress_health_check=_CHECKS
)
settings.load_profile("longhold")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background of a script
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs under test inherit it

FOR_THE_SUITE = ("LONGHOLD_TEST_", "LONGHOLD_REWRITE_")
"""Variables that steer the tests themselves."""
OF_A_USER = (
    "LONGHOLD_",
    "XDG_",
    "GIT_CONFIG",
    "GIT_AUTHOR",
    "GIT_COMMITTER",
    "ANTHROPIC_",
    "OPENAI_",
)
"""Variables that would let whoever runs the tests have a say in them."""


def pytest_configure(config: pytest.Config) -> None:
    config.has_database = True  # for the contract suites, which run elsewhere too


@pytest.fixture(autouse=True, scope="session")
def _stay_on_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give programs that tests start only what every machine has, and no network."""
    links = programs.link_programs(tmp_path_factory.getbasetemp() / "programs")
    programs.link_python(links)
    path = os.pathsep.join(filter(None, (str(CHILDREN), os.environ.get("PYTHONPATH"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(links))
        patch.setenv("PYTHONPATH", path)
        patch.setenv("GIT_ALLOW_PROTOCOL", "file")
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Number temporary directories by counting: pytest would list all there are for each."""
    base, numbers = tmp_path_factory.getbasetemp(), itertools.count()

    def mktemp(basename: str, numbered: bool = True) -> Path:
        path = base / f"{basename}{next(numbers)}"
        path.mkdir(mode=0o700)
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tmp_path_factory, "mktemp", mktemp)
        yield


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give each test an empty home and none of the settings and sessions of whoever runs it."""
    for name in list(os.environ):
        if name.startswith(OF_A_USER) and not name.startswith(FOR_THE_SUITE):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LONGHOLD_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("user")))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(home / "nowhere"))


@pytest.fixture(scope="session")
def postgres_url(_stay_on_this_machine: None) -> Iterator[str]:
    """Start a database server for this run, or say that there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: no store in PostgreSQL")
    from postgres_server import PostgresServer, programs

    if programs() is None:
        pytest.skip("PostgreSQL is not installed: nothing that needs a database is tested")
    server = PostgresServer()
    yield server.url
    server.stop()


@pytest.fixture(autouse=True)
def _store_of_the_run(request: pytest.FixtureRequest, _own_home: None) -> Iterator[None]:
    """With LONGHOLD_TEST_STORE=postgres, keep every session in a database instead of files."""
    if os.environ.get("LONGHOLD_TEST_STORE") != "postgres":
        yield
        return
    if request.node.get_closest_marker("files"):
        pytest.skip("looks into files, and sessions are in a database")
    url = request.getfixturevalue("postgres_url")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGHOLD_STORE", url)
        patch.setenv("LONGHOLD_STORE_TENANT", secrets.token_hex(8))
        yield
        from longhold.core.log.stores import default_store

        default_store().close()


@pytest.fixture(autouse=True)
def _no_prefix_moves_unsaid(monkeypatch: pytest.MonkeyPatch, _own_home: None) -> None:
    """The net over all tests: a request begins with the one before it, or an entry says why not."""
    monkeypatch.setenv("LONGHOLD_STRICT", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call what needs a database server slow; leave out what is optional, unless asked for."""
    is_wanted = os.environ.get("LONGHOLD_TEST_OPTIONAL") == "1"
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if item.get_closest_marker("optional") and not is_wanted:
            item.add_marker(pytest.mark.skip(reason="runs with LONGHOLD_TEST_OPTIONAL=1"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `recorded` over every recorded transcript there is."""
    if "recorded" in metafunc.fixturenames:
        files = sorted(RECORDED.rglob("*.jsonl*"))
        ids = [str(file.relative_to(RECORDED)) for file in files]
        nothing = pytest.param(None, marks=pytest.mark.skip(reason="no recorded transcripts here"))
        metafunc.parametrize("recorded", files or [nothing], ids=ids or ["none"])


@pytest.fixture
def talk(tmp_path):
    """Make sessions whose windows fill, and close them."""
    from compacting import Talk

    made = []

    def make(*scripts, **options):
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Talk(directory, *scripts, **options))
        return made[-1]

    yield make
    for one in made:
        one.session.close()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package with a plug-in: a module with this code, and its entry point."""
    site = tmp_path / "site"

    def put(kind: str, name: str, code: str, member: str = "make") -> None:
        module = f"plugin_{len(list(site.glob('*.py')))}_{tmp_path.name.replace('-', '_')}"
        info = site / f"{module}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {module}\nVersion: 1\n")
        points = f"[longhold.{kind}]\n{name} = {module}:{member}\n"
        (info / "entry_points.txt").write_text(points)
        (site / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(str(site))

    return put
