"""Checks a gateway with these settings by sending one request to a fake provider."""

import tempfile
from pathlib import Path

import httpx2
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from longhold.core.http import serve_in_thread, server_of
from longhold.core.log.store import FileStore
from longhold.core.settings import Settings
from longhold.gateway.conversations import Conversations
from longhold.gateway.planner import Planner
from longhold.gateway.proxy import PASSED, SESSION
from longhold.gateway.server import GatewayOptions, application
from longhold.gateway.tenants import TenantBudgets

MODEL = "claude-opus-4-8"
ASKED = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
ANSWER = {
    "id": "msg_check",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
}


def why_not_managed(settings: Settings) -> str:
    """Return why the gateway does not manage requests, or ''. Leaves no files."""
    with tempfile.TemporaryDirectory(prefix="longhold-check-") as temporary:
        place = Path(temporary)
        planner = Planner(
            Conversations(settings, store=FileStore(place), directory=place),
            salt=b"check",
            budgets=TenantBudgets(0.0, place),
        )
        with serve_in_thread(server_of(_provider)) as upstream:
            options = GatewayOptions(upstreams={"anthropic": upstream, "openai": upstream})
            app = application(planner, settings, options)
            with serve_in_thread(server_of(app, has_lifespan=True)) as url:
                answer = httpx2.post(f"{url}/v1/messages", json=ASKED)
    if answer.status_code != httpx2.codes.OK:
        return f"a request was answered with {answer.status_code}: {answer.text}"
    if reason := answer.headers.get(PASSED.decode()):
        return f"the gateway forwarded a request unchanged: {reason}"
    return (
        ""
        if SESSION.decode() in answer.headers
        else "gateway.on is off, so the gateway manages nothing"
    )


async def _provider(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse(ANSWER)(scope, receive, send)
