"""The todo list."""


def _todo(content, status):
    return {"content": content, "status": status, "activeForm": f"doing {content}"}


async def test_the_list_is_replaced_whole(tool_context, use):
    outcome = await use(
        "TodoWrite",
        todos=[_todo("a", "completed"), _todo("b", "in_progress"), _todo("c", "pending")],
    )
    assert outcome.content == "Todos: 1 done, 1 in progress, 1 to do."
    assert outcome.note == "doing b"
    assert [todo.content for todo in tool_context.todos] == ["a", "b", "c"]
    await use("TodoWrite", todos=[])
    assert tool_context.todos == ()


async def test_two_things_at_once_are_refused(tool_context, said, refused):
    await said("TodoWrite", todos=[_todo("a", "pending")])
    reason = await refused(
        "TodoWrite", todos=[_todo("a", "in_progress"), _todo("b", "in_progress")]
    )
    assert "At most one" in reason
    assert [todo.status for todo in tool_context.todos] == ["pending"]


async def test_a_todo_must_say_something_and_have_a_known_state(refused):
    assert "says something" in await refused("TodoWrite", todos=[_todo(" ", "pending")])
    assert "wrong input" in await refused("TodoWrite", todos=[_todo("a", "someday")])
