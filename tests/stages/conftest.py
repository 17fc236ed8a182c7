"""What the tests of stages share."""

import pytest

from .compacting import Talk


@pytest.fixture
def talk(tmp_path):
    """Make sessions whose windows fill, and close them."""
    made = []

    def make(*scripts, **options):
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Talk(directory, *scripts, **options))
        return made[-1]

    yield make
    for one in made:
        one.session.close()
