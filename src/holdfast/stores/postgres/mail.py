"""Mail between sessions of a tenant, on whatever machines they run.

A box numbers its mail under the lock of its row, so that what is committed late is not skipped. How
far a session has read is in its log, with the id of the box: it moves with the session.
"""

from collections.abc import Mapping

from holdfast.errors import SessionNotFound
from holdfast.log.store import is_id
from holdfast.stores.postgres.database import PostgresDatabase

_SEND = """
WITH found AS (
    SELECT key FROM holdfast.sessions WHERE tenant = %(tenant)s AND id = %(id)s
), box AS (
    INSERT INTO holdfast.boxes (session, last) SELECT key, 1 FROM found
    ON CONFLICT (session) DO UPDATE SET last = holdfast.boxes.last + 1
    RETURNING session, last
), put AS (
    INSERT INTO holdfast.mail (session, seq, key, body)
    SELECT session, last, %(key)s, %(body)s FROM box ON CONFLICT (session, key) DO NOTHING
)
SELECT key FROM found
"""


class PostgresMail:
    def __init__(self, database: PostgresDatabase, tenant: str, key: int) -> None:
        self._database = database
        self._tenant = tenant
        self._key = key

    def send(self, session: str, key: str, body: bytes) -> None:
        given = {"tenant": self._tenant, "id": session, "key": key, "body": body}
        if not is_id(session) or not self._database.rows(_SEND, given):
            raise SessionNotFound(f"there is no session {session!r} in the store")

    def after(self, cursors: Mapping[str, int]) -> list[tuple[str, bytes]]:
        boxes = self._database.rows(
            "SELECT id FROM holdfast.boxes WHERE session = %s", (self._key,)
        )
        if not boxes:
            return []
        box = str(boxes[0][0])
        rows = self._database.rows(
            "SELECT seq, body FROM holdfast.mail WHERE session = %s AND seq > %s ORDER BY seq",
            (self._key, cursors.get(box, 0)),
        )
        return [(f"{box}:{seq}", bytes(body)) for seq, body in rows]
