"""A process that writes one session, line by line from its input, and reports each result."""

import sys

from longhold.core.log.entries import Said
from longhold.core.log.stores.postgres import PostgresStore
from longhold.core.messages import Text
from longhold.core.settings import StoreSettings
from longhold.errors import StoreError

url, tenant, session, lease_seconds = sys.argv[1:]
store = PostgresStore(url, StoreSettings(tenant=tenant, lease_seconds=float(lease_seconds)))
log = store.open(session)
sys.stdout.write("open\n")
sys.stdout.flush()
for line in sys.stdin:
    try:
        log.append(Said(content=(Text(text=line.strip()),)))
        log.flush()
        answer = "kept"
    except StoreError as error:
        answer = type(error).__name__
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()
