"""A process that writes one session, one line of its input at a time, and says what came of each."""

import sys

from holdfast.errors import StoreError
from holdfast.log.entries import Said
from holdfast.messages import Text
from holdfast.settings import StoreSettings
from holdfast.stores.postgres import PostgresStore

url, tenant, session, lease_seconds = sys.argv[1:]
store = PostgresStore(url, StoreSettings(tenant=tenant, lease_seconds=float(lease_seconds)))
log = store.open(session)
print("open", flush=True)
for line in sys.stdin:
    try:
        log.append(Said(content=(Text(text=line.strip()),)))
        log.flush()
        print("kept", flush=True)
    except StoreError as error:
        print(type(error).__name__, flush=True)
