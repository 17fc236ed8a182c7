"""The gateway's figures about sessions during their calls."""

import json

from starlette.datastructures import Headers

from gateway_parts import EAGER, MODEL
from longhold.gateway.conversations import Conversations
from longhold.gateway.endpoints import ENDPOINTS
from longhold.gateway.planner import Planner
from longhold.gateway.shadow import Shadow
from longhold.gateway.tenants import TenantBudgets


async def test_a_session_whose_first_answer_is_awaited_has_cost_nothing_yet(tmp_path):
    shadow = Shadow()
    planner = Planner(
        Conversations(EAGER), salt=b"", budgets=TenantBudgets(0.0, tmp_path), shadow=shadow
    )
    said = [{"role": "user", "content": "Build it."}]
    body = json.dumps({"model": MODEL, "max_tokens": 100, "messages": said}).encode()
    plan = await planner.plan(ENDPOINTS["/v1/messages"], body, Headers({}))
    [figures] = planner.figures().values()
    assert (figures.tally.calls, figures.model) == (0, MODEL)
    planner.end(plan)
    planner.close()
