"""What the same requests would have cost without the gateway."""

import json

from longhold.core.messages import Usage
from longhold.gateway.endpoints import ENDPOINTS
from longhold.gateway.shadow import BilledCall, Shadow

MODEL = "claude-haiku-4-5"
"""A window of 200,000 tokens."""


def body(chars):
    text = "word " * (chars // 5)
    return json.dumps(
        {"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": text}]}
    ).encode()


def saved(given_chars, sent_chars):
    shadow = Shadow()
    try:
        call = BilledCall(
            session="s",
            model=MODEL,
            endpoint=ENDPOINTS["/v1/messages"],
            given=body(given_chars),
            sent=body(sent_chars),
            usage=Usage(input_tokens=sent_chars // 4, output_tokens=1),
            at=1_000.0,
        )
        shadow.account(call)
        return shadow.bills()["s"].saved_usd
    finally:
        shadow.close()


def test_a_request_that_the_window_could_not_hold_saved_nothing():
    assert saved(400_000, 100_000) > 0
    assert saved(2_000_000, 100_000) == 0
