"""What tests check in a request: its bytes without breakpoints, the breakpoints, the text."""


def bare(value):
    """Take every marker off a request or a part of one."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key != "cache_control"}
    return [bare(item) for item in value] if isinstance(value, list | tuple) else value


def marked(kwargs):
    """List the blocks of the messages that carry a marker."""
    return [
        (at, i)
        for at, message in enumerate(kwargs["messages"])
        for i, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def upto(kwargs, place):
    """Give a request's bytes up to a block, as far as a cache depends on them."""
    at, i = place
    messages = bare(kwargs["messages"])
    cut = [*messages[:at], messages[at] | {"content": messages[at]["content"][: i + 1]}]
    frame = {key: bare(kwargs.get(key)) for key in ("model", "system", "tools", "thinking")}
    return frame | {"messages": cut}


def said(kwargs):
    """List what the messages say, by side."""
    return [
        (
            message["role"],
            [block.get("text") or block.get("content") for block in message["content"]],
        )
        for message in kwargs["messages"]
    ]
