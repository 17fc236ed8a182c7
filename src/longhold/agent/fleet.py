"""Session jobs that any machine with access to the store can run, from any queue.

While another process has the session, `run_job` raises `LogLocked` or `LeaseLost`. Retry later.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.build import build_agent
from longhold.core.log import Header
from longhold.core.log.cursor import last_n
from longhold.core.log.queued_job import JobKind, SessionJob
from longhold.core.log.store import Store
from longhold.core.memory.session_memory import MemoryJobs
from longhold.core.models.protocol import Model
from longhold.core.settings import Mode, load_settings
from longhold.core.turn.loop import Stopped
from longhold.core.view import fold
from longhold.errors import ConfigError, StoreError


def job_for(store: Store, kind: JobKind, session: str) -> SessionJob:
    loaded = store.load(session)
    at = last_n(loaded.entries)
    return SessionJob(kind=kind, session=loaded.header.session, position=at)


async def run_job(
    job: SessionJob, store: Store, open_model: Callable[[str], Model], mode: Mode | None = None
) -> str:
    """Run a job unless it is done. Return one line about the result.

    `open_model` receives the name of the session's model. Calls that would prompt are denied.
    """
    if job.is_done(store.load(job.session, after=job.position).entries):
        return "done already"
    async with _agent_of(job, store, open_model, mode) as agent:
        if job.is_done(agent.engine.view.history):
            return "done already"
        match job.kind:
            case "resume":
                return await _resume(agent)
            case "extract":
                await _memory(agent).extract_now()
            case "dream":
                report = await _memory(agent).dreams.dream_now(is_trial=False)
                return report.line
            case "notes":
                await agent.session._layers.notes.update(agent.engine)
        history = agent.engine.view.history
        if failure := job.failure(history):
            raise StoreError(f"{job.kind} of {job.session}: {failure}")
        return "done" if job.is_done(history) else "nothing to do"


@asynccontextmanager
async def _agent_of(
    job: SessionJob, store: Store, open_model: Callable[[str], Model], mode: Mode | None
) -> AsyncIterator[Agent]:
    loaded = store.load(job.session)
    directory = _directory_of(loaded.header)
    settings = load_settings(directory)
    if job.kind != "resume":  # because a person or a session has accepted the cost of the job
        settings = replace(settings, budget=replace(settings.budget, own_share=0.0))
    agent = await build_agent(
        open_model(fold(loaded.entries).model),
        directory=directory,
        resume=job.session,
        mode=mode,
        store=store,
        settings=settings,
    )
    try:
        yield agent
    finally:
        await agent.close()


def _directory_of(header: Header) -> Path:
    directory = Path(header.directory)
    if not directory.is_dir():
        raise StoreError(
            f"session {header.session} works in {directory}, which is not on this machine; run a worker on the machine that has it"
        )
    return directory


async def _resume(agent: Agent) -> str:
    end = Stopped(reason="completed")
    async for event in agent.work():
        if isinstance(event, Stopped):
            end = event
    if end.reason != "completed":
        raise StoreError(f"the turn ended as {end.reason}: {end.detail}")
    return end.text or end.detail or "done"


def _memory(agent: Agent) -> MemoryJobs:
    if agent.memory is None:
        raise ConfigError("memory is off (memory.on), so there is nothing to do")
    return agent.memory
