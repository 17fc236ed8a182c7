"""Sessions in a database: whose they are, and how long a process owns what it writes."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    tenant: str = setting(
        "",
        "whose sessions these are; tenants of one database never see each other's",
        form=r"[^\x00]{0,200}",
        personal=True,
    )
    lease_seconds: float = setting(
        15.0,
        "a writer that is silent for so long may be replaced; shorter takes over sooner and bears "
        "shorter pauses",
        low=0.5,
        high=600,
        personal=True,
    )
    patience_seconds: float = setting(
        30.0,
        "how long a commit is tried while the database is away; a restart takes a few seconds",
        low=0.1,
        high=600,
        personal=True,
    )
    bodies: str = setting(
        "",
        "where large results go instead of the database: s3://…, gs://…, az://… or file://…, one "
        "place for each database",
        form=r"[^\x00]{0,2000}",
        personal=True,
    )
    bodies_least_bytes: int = setting(
        262_144,
        "of a result that goes there; a database keeps smaller ones well, and gives them sooner",
        low=1,
        high=1 << 30,
        personal=True,
    )
    jobs: str = setting(
        "here",
        "who extracts memories, dreams and updates notes: the session's own process, 'here', or "
        "'workers'. They begin when nobody writes the session, so it is for sessions that are open "
        "for a turn at a time",
        form="here|workers",
        personal=True,
    )
    worker_beat_seconds: float = setting(
        5.0,
        "how often a worker says that it lives, and looks for jobs of workers that do not",
        low=0.1,
        high=600,
        personal=True,
    )
    worker_stalled_seconds: float = setting(
        20.0,
        "a worker that is silent for so long is taken for dead and its jobs are run again; a few beats",
        low=0.2,
        high=3_600,
        personal=True,
    )
