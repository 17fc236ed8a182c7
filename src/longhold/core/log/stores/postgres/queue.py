"""Job queue for workers in the session database, run by procrastinate.

A job is queued only once, even if it is requested repeatedly. Workers send heartbeats. If a
worker's heartbeats stop, another worker reruns its jobs. A job may thus run twice, but the log
position and the fence make the second run harmless.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job
from procrastinate.schema import SchemaManager

from longhold.core.log.queued_job import SessionJob
from longhold.core.log.stores.postgres.database import PostgresDatabase
from longhold.core.settings import StoreSettings
from longhold.errors import LeaseLost, LogLocked, StoreError

SCHEMA = "longhold_jobs"
TASK = "session"
_LOCK = 0x686F6C65
"""Number of the advisory lock that is held while the tables are created."""
_OPTIONS = f"-c search_path={SCHEMA}"
CONNECTIONS = 4
"""One connection listens for new jobs. The others fetch and finish them."""


class _UntilFree(BaseRetryStrategy):
    """Retry without limit while another process writes the session, but not after other errors."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, LogLocked | LeaseLost):
            return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=self._seconds))
        return None


class JobQueue:
    """The jobs of one tenant. Use `open_queue` to get one."""

    def __init__(
        self, app: App, settings: StoreSettings, run: Callable[[SessionJob], Awaitable[str]]
    ) -> None:
        self._app = app
        self._settings = settings
        self._name = "t" + hashlib.sha256(settings.tenant.encode()).hexdigest()[:24]
        """A hash of the tenant's name, because PostgreSQL limits the length of channel names."""

        async def session(kind: Any, session: str, position: int) -> str:
            return await run(SessionJob(kind=kind, session=session, position=position))

        wait_seconds = settings.lease_seconds / 3
        self._task = app.task(name=TASK, queue=self._name, retry=_UntilFree(wait_seconds))(session)

    async def put(self, job: SessionJob) -> bool:
        lock = f"{self._name}:{job.session}"
        waiting = self._task.configure(
            lock=lock, queueing_lock=f"{lock}:{job.kind}:{job.position}", queue=self._name
        )
        try:
            await waiting.defer_async(kind=job.kind, session=job.session, position=job.position)
        except AlreadyEnqueued:
            return False
        return True

    async def work(self, *, at_once: int = 1, is_endless: bool = True) -> None:
        """Run up to `at_once` jobs in parallel until a signal arrives or no jobs are left."""
        await self._sweep()
        ended = asyncio.Event()
        sweeping = asyncio.create_task(self._sweep_until(ended), name="longhold-sweep")
        try:
            await self._app.run_worker_async(
                queues=[self._name],
                wait=is_endless,
                concurrency=at_once,
                update_heartbeat_interval=self._settings.worker_beat_seconds,
                stalled_worker_timeout=self._settings.worker_stalled_seconds,
                delete_jobs="successful",
            )
        finally:
            ended.set()
            # If the sweep were cancelled during its query, its connection would return to the pool
            # with a command still running.
            await asyncio.gather(sweeping, return_exceptions=True)

    async def _sweep_until(self, ended: asyncio.Event) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), self._settings.worker_beat_seconds)
            if ended.is_set():
                return
            await self._sweep()

    async def _sweep(self) -> None:
        manager = self._app.job_manager
        stalled = await manager.get_stalled_jobs(
            queue=self._name, seconds_since_heartbeat=self._settings.worker_stalled_seconds
        )
        for job in stalled:
            await manager.retry_job(job)


@asynccontextmanager
async def open_queue(
    url: str,
    settings: StoreSettings,
    run: Callable[[SessionJob], Awaitable[str]] = lambda job: asyncio.sleep(0, ""),
) -> AsyncIterator[JobQueue]:
    """Connect to a database's queue, creating missing tables. `run` executes a job."""
    connector = PsycopgConnector(
        conninfo=url, kwargs={"options": _OPTIONS}, min_size=1, max_size=CONNECTIONS
    )
    await asyncio.to_thread(_make_tables, PostgresDatabase(url, settings.patience_seconds))
    app = App(connector=connector)
    async with app.open_async():
        yield JobQueue(app, settings, run)


def _make_tables(database: PostgresDatabase) -> None:
    def make(connection: psycopg.Connection[Any]) -> None:
        if _has_tables(connection):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if not _has_tables(connection):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
                connection.execute(SchemaManager.get_schema())

    try:
        database.run(make)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the queue's tables cannot be created: {error.diag.message_primary}; let the "
            "database's owner run `longhold worker --until-done` once"
        ) from error
    finally:
        database.close()


def _has_tables(connection: psycopg.Connection[Any]) -> bool:
    """Query the catalogue, because a transaction would remember a failed name lookup."""
    found = connection.execute(
        "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s",
        (SCHEMA, "procrastinate_jobs"),
    )
    return found.fetchone() is not None
