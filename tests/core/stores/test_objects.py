"""Large results in object storage: what lies there, what does not, and that it goes with its session."""

import pytest

from longhold.core.settings import StoreSettings
from longhold.errors import ConfigError, StoreError

pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("obstore", reason="obstore is not installed")

from longhold.core.log.stores.postgres import PostgresStore

LARGE, SMALL = "large " * 100, "small"


@pytest.fixture
def bucket(tmp_path):
    (tmp_path / "bucket").mkdir()
    return tmp_path / "bucket"


@pytest.fixture
def opened(postgres_url, tenant, bucket):
    """Open the database with a bucket for what has 100 bytes or more, or without one."""
    stores = []

    def open_store(bodies=None):
        place = bucket.as_uri() if bodies is None else bodies
        settings = StoreSettings(tenant=tenant, bodies=place, bodies_least_bytes=100)
        stores.append(PostgresStore(postgres_url, settings))
        return stores[-1]

    yield open_store
    for one in stores:
        one.close()


def objects(bucket):
    return [path.read_bytes().decode() for path in sorted(bucket.rglob("*")) if path.is_file()]


def kept(store, project, id, **texts):
    with store.create(directory=project, session=id) as log:
        for name, text in texts.items():
            log.results.keep(log.results.body(name, text, cap_bytes=10_000), is_only_copy=True)
        log.keep_text("notes.md", LARGE)


def test_only_large_results_lie_there(opened, bucket, project):
    store = opened()
    kept(store, project, "s", big=LARGE, little=SMALL)
    assert objects(bucket) == [LARGE]
    assert store.results("s").read("big.txt") == LARGE
    assert {name: data.decode() for name, data in store.beside("s").items()} == {
        "notes.md": LARGE,
        "tool-results/big.txt": LARGE,
        "tool-results/little.txt": SMALL,
    }


def test_they_go_with_their_session(opened, bucket, project):
    store = opened()
    for id in ("s", "other"):
        kept(store, project, id, big=LARGE, second=LARGE + id)
    store.branch("s").close()
    assert len(objects(bucket)) == 6
    with store.open("other") as log:
        log.results.remove(body for body in log.results.stored() if body.name == "second.txt")
    assert len(objects(bucket)) == 5
    store.delete("s")
    assert len(objects(bucket)) == 3
    for one in store.sessions():
        store.delete(one.id)
    assert objects(bucket) == []


def test_a_node_that_does_not_know_the_place_says_so(opened, bucket, project):
    kept(opened(), project, "s", big=LARGE)
    with pytest.raises(StoreError, match=r"set store\.bodies"):
        opened(bodies="").results("s").read("big.txt")
    for path in bucket.rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(StoreError, match="is gone from object storage"):
        opened().results("s").read("big.txt")


def test_a_place_that_makes_no_sense_says_so(opened):
    with pytest.raises(ConfigError, match=r"store\.bodies: .*s3://"):
        opened(bodies="nonsense")


def test_a_directory_that_is_not_there_is_told_in_one_line(opened, tmp_path):
    with pytest.raises(ConfigError, match="a directory that is there") as raised:
        opened(bodies=f"file://{tmp_path}/missing")
    assert "\n" not in str(raised.value)
