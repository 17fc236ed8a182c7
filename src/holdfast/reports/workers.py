"""Read many session files on every core."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from holdfast.reports.places import SessionFile

if TYPE_CHECKING:
    from concurrent.futures import Future

Job = TypeVar("Job")

ALONE_BYTES = 24 << 20
"""Less than this is read before another process has started."""
AHEAD = 3
"""Jobs given out per process: none waits for work, and few results wait in memory."""

Advance = Callable[[int], None]
"""Takes how many bytes were read since the last time."""


def processes_for(files: Sequence[SessionFile]) -> int:
    return 1 if sum(file.bytes for file in files) < ALONE_BYTES else os.cpu_count() or 1


def each_in_processes(
    work: Callable[[Job], bytes], jobs: Iterable[Job], processes: int
) -> Iterator[tuple[Job, bytes]]:
    """Do all jobs and yield each with its result as it is done; with one process, in this one."""
    if processes < 2:
        yield from ((job, work(job)) for job in jobs)
        return
    # Only here: what is needed to start processes takes longer to load than a search.
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from multiprocessing import get_context

    waiting = iter(jobs)
    running: dict[Future[bytes], Job] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while True:
            for job in islice(waiting, AHEAD * processes - len(running)):
                running[pool.submit(work, job)] = job
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()
