"""Past spending of a project, which gives its memory a budget."""

from longhold.core.log.spending import FileLedger
from longhold.core.memory.backlog import learning_directory
from longhold.core.memory.paths import memory_directory
from longhold.core.messages.usage import Tally
from longhold.core.settings import home


def fund(directory, usd=10.0):
    """Let the sessions of a directory have spent this much today."""
    place = learning_directory(home(), memory_directory(home(), directory))
    FileLedger(place / "spent" / "all").add(Tally(calls=10, usd=usd))
