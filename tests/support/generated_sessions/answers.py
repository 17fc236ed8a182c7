"""How the model of a generated session answers: in pieces, with tools, alone or in parallel.

One response is stored as one record per block. All pieces share the response's id, request and
prompt counts; only the last may show the true output count and the stop reason. Results hang
under the piece that asked for them, after the whole answer or, when tools start early, between
its pieces.
"""

from generated_sessions import phrases
from generated_sessions.calls import GeneratedCall, Json
from generated_sessions.world import World
from generated_sessions.writer import Response

CALLS_PER_ROUND = ((1, 915), (2, 62), (3, 12), (4, 6), (6, 3), (8, 2))
"""Tool calls in one answer, per mille, as counted in recorded sessions."""
THINKING_SHARE, OPENER_SHARE = 0.77, 0.4
"""Of answers that think aloud, and that announce what they do."""
STREAMED_SHARE = 0.5
"""Of parallel calls that start, and are stored with their results, before the answer is complete."""
FINAL_USAGE_SHARE = 0.45
"""Of answers whose last piece has the true output count; the others stop at a first guess."""
FIRST_GUESS_TOKENS = (1, 8)
"""What the output count says while the answer still streams."""
STOP_REASON_SHARE = 0.03
"""Of answers whose last piece says why it stopped."""
HOOK_SHARE, HOOKED_SHARE = 0.5, 0.6
"""Of sessions that have tool hooks, and of their results that a hook saw."""
DANGLING_SHARE = 0.02
"""Of hook signs whose parent was never written."""
INTERJECTED_SHARE = 0.006
"""Of results during which the user typed something."""
UNCACHED_FIRST, UNCACHED_LATER = 10, 8
"""Tokens after the last cache marker: in the first call of a turn, and in the following ones."""
SHOWN_CHARS = 400
"""Of the output so far that a sign of life shows."""


class Answers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._called_at = 0.0
        self.has_hooks = world.chance.odds(HOOK_SHARE)

    def call_tools(self, *, is_first: bool, calls: list[GeneratedCall] | None = None) -> None:
        chance = self._world.chance
        response = self._ask(is_first=is_first)
        made = calls or self._choose_calls()
        ids = [chance.token("toolu_01") for _ in made]
        preface = self._preface(OPENER_SHARE)
        uses: list[Json] = [
            {"type": "tool_use", "id": tool_id, "name": call.name, "input": call.input}
            for tool_id, call in zip(ids, made, strict=True)
        ]
        tokens = self._world.weigh_answer(preface + uses)
        for block in preface:
            self._piece(response, block)
        is_streamed = len(made) > 1 and chance.odds(STREAMED_SHARE)
        asked: list[tuple[GeneratedCall, str, str]] = []
        for call, tool_id, use in zip(made, ids, uses, strict=True):
            if use is uses[-1]:
                uuid = self._end(response, use, tokens, "tool_use")
            else:
                uuid = self._piece(response, use)
            if is_streamed:
                self._result(call, tool_id, uuid)
            else:
                asked.append((call, tool_id, uuid))
        for call, tool_id, uuid in asked:
            self._result(call, tool_id, uuid)

    def conclude(self, *, is_first: bool) -> None:
        """Answer without a tool: the turn is done."""
        world = self._world
        response = self._ask(is_first=is_first)
        preface = self._preface(0.0)
        text: Json = {
            "type": "text",
            "text": phrases.answer(world.project, world.balance.appetite("assistant")),
        }
        tokens = world.weigh_answer([*preface, text])
        for block in preface:
            self._piece(response, block)
        self._end(response, text, tokens, "end_turn")

    def _ask(self, *, is_first: bool) -> Response:
        world, chance = self._world, self._world.chance
        usage = world.meter.call(
            world.writer.seconds - self._called_at,
            uncached=UNCACHED_FIRST if is_first else UNCACHED_LATER,
        )
        world.writer.wait(chance.uniform(1.5, 9.0))
        self._called_at = world.writer.seconds
        return Response(
            id=chance.token("msg_01"), request=chance.token("req_011C", 20), usage=usage
        )

    def _choose_calls(self) -> list[GeneratedCall]:
        world = self._world
        counts, weights = zip(*CALLS_PER_ROUND, strict=True)
        count: int = world.chance.choices(counts, weights)[0]
        size = world.balance.appetite("result") * world.scale
        return [world.tools.next_call(size, is_parallel=count > 1) for _ in range(count)]

    def _preface(self, opener_share: float) -> list[Json]:
        world, blocks = self._world, list[Json]()
        if world.chance.odds(THINKING_SHARE):
            text = phrases.thinking(
                world.project, world.balance.appetite("assistant") * world.scale
            )
            blocks.append(
                {
                    "type": "thinking",
                    "thinking": text,
                    "signature": world.chance.signature(len(text)),
                }
            )
        if world.chance.odds(opener_share):
            blocks.append({"type": "text", "text": phrases.opener(world.project)})
        return blocks

    def _piece(self, response: Response, block: Json) -> str:
        chance = self._world.chance
        self._world.writer.wait(chance.uniform(0.1, 1.5))
        return self._world.writer.piece(response, block, chance.between(*FIRST_GUESS_TOKENS), None)

    def _end(self, response: Response, block: Json, tokens: int, stop_reason: str) -> str:
        chance = self._world.chance
        self._world.writer.wait(chance.uniform(0.1, 1.5))
        shown = tokens if chance.odds(FINAL_USAGE_SHARE) else chance.between(*FIRST_GUESS_TOKENS)
        reason = stop_reason if chance.odds(STOP_REASON_SHARE) else None
        return self._world.writer.piece(response, block, shown, reason)

    def _result(self, call: GeneratedCall, tool_id: str, asked: str) -> None:
        world, writer, chance = self._world, self._world.writer, self._world.chance
        writer.wait(chance.uniform(0.05, 2.0))
        for number, output in enumerate(call.ticks, start=1):
            writer.wait(1.0)
            shown: Json = {
                "output": output[-SHOWN_CHARS:],
                "fullOutput": output,
                "elapsedTimeSeconds": number + 1,
            }
            writer.progress({"type": "bash_progress"} | shown, tool_id)
        if call.prompt is not None:
            data: Json = {
                "type": "agent_progress",
                "prompt": call.prompt,
                "agentId": f"a{chance.hex(6)}",
            }
            writer.progress(data, tool_id)
        if self.has_hooks and chance.odds(HOOKED_SHARE):
            writer.hook_progress(
                f"PostToolUse:{call.name}", tool_id, is_dangling=chance.odds(DANGLING_SHARE)
            )
        if call.edited is not None and not world.is_sidechain:
            writer.snapshot(call.edited)
        writer.result(call, tool_id, asked, self._interjection())
        world.weigh_result(call, tool_id)

    def _interjection(self) -> str | None:
        world = self._world
        if world.is_sidechain or not world.chance.odds(INTERJECTED_SHARE):
            return None
        text = phrases.user_message(world.project, 0.0)
        world.writer.queue("enqueue", text)
        world.writer.queue("remove")
        world.weigh_in(text)
        return text
