"""The demo's scene about memory: everything it claims is so."""

from holdfast.cli.demo_command import memory_demo, memory_lines


async def test_learnt_in_one_session_recalled_in_the_next_dreamt_and_undone(tmp_path):
    """Over the simulator, with the official SDK."""
    scene = await memory_demo(tmp_path)
    assert scene["learnt"] == scene["recalled"] == ["releases-go-out-on-tuesday.md"]
    assert (scene["memories"], scene["after_dream"], scene["dream"]) == (2, 1, "1 merged")
    assert scene["undo_is_exact"]
    lines = memory_lines(scene)
    assert any("releases-go-out-on-tuesday.md" in line for line in lines)
    assert lines[-1].endswith("every byte restored")
