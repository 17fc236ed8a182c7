"""A connection to agents that a test must not use."""


async def not_resumed(agent):
    raise AssertionError(f"{agent} was resumed")
