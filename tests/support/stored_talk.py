"""A session with tool calls and a result stored next to its log, in any store."""

from longhold import Session

MODEL = "claude-sonnet-5-5"
TOOL = {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}
LONG = "\n".join(f"line {n} of a long file with words in it" for n in range(4_000))


def reply(id: str, *content: dict, stop: str = "end_turn") -> dict:
    usage = {"input_tokens": 1_000, "output_tokens": 50}
    whole = {"id": id, "type": "message", "role": "assistant", "model": MODEL}
    return {**whole, "content": list(content), "stop_reason": stop, "usage": usage}


async def talked(store, directory, id: str = "talk", turns: int = 6) -> str:
    """Make a session with a spilled result and some turns."""
    session = Session.open(
        model=MODEL, tools=[TOOL], history=True, id=id, directory=directory, store=store
    )
    async with session:
        for number in range(turns):
            session.user(f"Look at part {number} of the harvest plan. " + "It matters. " * 60)
            await session.prepare()
            call = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Bash",
                "input": {"command": "x"},
            }
            await session.record(reply(f"a{number}", call, stop="tool_use"))
            session.tool_result(f"t{number}", LONG if number == 0 else f"part {number} is fine")
            await session.prepare()
            text = {"type": "text", "text": f"Part {number} is ripe. " * 40}
            await session.record(reply(f"b{number}", text))
    return id
