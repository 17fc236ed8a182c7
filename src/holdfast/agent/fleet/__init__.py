"""Work on sessions that any machine of a fleet may do: jobs, and the worker that runs them."""

from holdfast.agent.fleet.jobs import JOBS, SessionJob, run_job

__all__ = ["JOBS", "SessionJob", "run_job"]
