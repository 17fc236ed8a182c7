"""The list of what is to be done, in its last state."""

from holdfast.stages.compact.digest.extract import extract
from holdfast.stages.compact.digest.facts import TodoFact


def test_a_list_written_whole_replaces_the_one_before(talk):
    """Only the last list counts."""
    talk.call("TodoWrite", "ok", todos=[{"content": "old", "status": "pending"}])
    n = talk.call("TodoWrite", "ok", todos=[{"content": "new", "status": "in_progress"}])
    assert extract(talk.items).todos == (TodoFact(text="new", state="in_progress", id=n),)


def test_single_entries_are_added_and_changed(talk):
    """Tasks are known by the number their tool gave them."""
    talk.call("TaskCreate", "Task #1 created successfully: Build", subject="Build")
    made = talk.call("TaskCreate", "Task #2 created successfully: Test", subject="Test")
    n = talk.call("TaskUpdate", "Updated task #1 status", taskId="1", status="completed")
    assert extract(talk.items).todos == (
        TodoFact(text="Build", state="completed", id=n),
        TodoFact(text="Test", state="pending", id=made),
    )


def test_a_failed_call_changes_nothing(talk):
    """A refused list is no list."""
    talk.call("TodoWrite", "refused", is_error=True, todos=[{"content": "x", "status": "pending"}])
    assert extract(talk.items).todos == ()


def test_a_plan_of_steps_is_a_list_too(talk):
    """Another agent calls its todos steps of a plan."""
    n = talk.call("update_plan", "ok", plan=[{"step": "look", "status": "completed"}])
    assert extract(talk.items).todos == (TodoFact(text="look", state="completed", id=n),)


def test_a_list_that_is_shown_says_how_tasks_stand(talk):
    """Somebody else may have finished one."""
    talk.call("TaskCreate", "Task #1 created successfully: Build", subject="Build")
    n = talk.call("TaskList", "#1 [completed] Build")
    assert extract(talk.items).todos == (TodoFact(text="Build", state="completed", id=n),)
