"""Large bodies of results in object storage, named by their session and content.

A row of `bodies` says that one lies there: it has a size and nothing in it. Only results go there,
which are written once. What was put for a commit that failed goes with its session.
"""

from typing import Any

from holdfast.errors import ConfigError, StoreError
from holdfast.log.results import DIRECTORY, sha256_of
from holdfast.settings import StoreSettings


class ObjectBodies:
    def __init__(self, settings: StoreSettings) -> None:
        self._least_bytes = settings.bodies_least_bytes
        self._objects = _connect(settings.bodies) if settings.bodies else None

    def put(self, key: int, name: str, data: bytes) -> tuple[str, int, bytes]:
        """Return hash, size and what the database keeps of a body; a large result is put away."""
        sha256 = sha256_of(data)
        is_large = len(data) >= self._least_bytes and name.startswith(f"{DIRECTORY}/")
        if self._objects is None or not is_large:
            return sha256, len(data), data
        self._objects.put(self._name(key, sha256), data)
        return sha256, len(data), b""

    def body(self, key: int, sha256: str, size: int, data: bytes) -> bytes:
        """Return a body, given its row."""
        if data or not size:
            return bytes(data)
        if self._objects is None:
            raise StoreError("a body lies in object storage; set store.bodies to where that is")
        try:
            return bytes(self._objects.get(self._name(key, sha256)).bytes())
        except FileNotFoundError:
            raise StoreError(f"the body {sha256} is gone from object storage") from None

    def remove(self, key: int, sha256: str = "") -> None:
        """Remove one body of a session, or all."""
        if self._objects is None:
            return
        listed = [meta["path"] for page in self._objects.list(self._name(key, "")) for meta in page]
        doomed = [path for path in listed if path.endswith(sha256)]
        if doomed:
            self._objects.delete(doomed)

    def _name(self, key: int, sha256: str) -> str:
        return f"{key}/{sha256}"


def _connect(url: str) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise ConfigError(
            f"store.bodies needs obstore: pip install 'holdfast[objects]' ({error})"
        ) from error
    try:
        return from_url(url)
    except Exception as error:
        wrong = str(error).partition("\n")[0]  # what follows is for those who debug the library
        raise ConfigError(
            f"store.bodies: {wrong}; give s3://…, gs://…, az://…, or "
            "file://… of a directory that is there"
        ) from error
