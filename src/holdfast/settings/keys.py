"""Keys for models that the user gave once, in a private file; the environment comes first."""

import msgspec

from holdfast.errors import StoreError
from holdfast.settings.files import private_directory, write_private
from holdfast.settings.reading import home

FILE = "keys.json"
ANTHROPIC, OPENAI = "ANTHROPIC_API_KEY", "OPENAI_API_KEY"


def saved_key(name: str) -> str | None:
    """Return the key that was saved under the name of its variable; None if there is none."""
    return _read().get(name) or None


def save_key(name: str, key: str) -> None:
    place = private_directory(home()) / FILE
    write_private(place, msgspec.json.encode(_read() | {name: key}).decode())


def _read() -> dict[str, str]:
    place = home() / FILE
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{place}: {error}; correct or remove it") from error
