"""Plan mode, and approving the plan."""

import stat


async def test_a_plan_is_made_in_a_file_of_the_session(tool_context, said):
    tool_context.session = "ab/c d"
    entered = await said("EnterPlan")
    file = tool_context.home / "plans" / "ab-c-d.md"
    assert str(file) in entered
    assert tool_context.plan.is_on
    handed = await said("ExitPlan", plan="# Plan\n1. do it")
    assert handed.endswith("# Plan\n1. do it\n")
    assert not tool_context.plan.is_on
    assert file.read_text() == "# Plan\n1. do it\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_plan_that_was_written_to_the_file_is_handed_over(tool_context, said):
    await said("EnterPlan")
    await said("Write", file_path=str(tool_context.plan.file), content="the plan\n")
    assert "the plan" in await said("ExitPlan")


async def test_a_plan_from_before_is_told(tool_context, said):
    await said("EnterPlan")
    await said("ExitPlan", plan="first")
    assert "A plan from before" in await said("EnterPlan")


async def test_leaving_without_a_plan_is_refused(tool_context, said, refused):
    assert "Begin with EnterPlan" in await refused("ExitPlan", plan="x")
    await said("EnterPlan")
    assert "There is no plan yet" in await refused("ExitPlan")
    assert tool_context.plan.is_on


async def test_a_fork_cannot_plan(tool_context):
    from longhold.agent.tools.plan import ENTER_PLAN

    outcome = await ENTER_PLAN.run({}, tool_context.fork())
    assert outcome.is_error
    assert not tool_context.plan.is_on
