"""Lines for the user: shown immediately if someone listens, otherwise kept."""

from longhold.agent.user_notices import Notices


def test_lines_are_kept_until_taken_each_once():
    notices = Notices(kept=("set up",))
    notices.extend(("b", "b"))
    assert notices.take() == ["set up", "b"]
    assert notices.take() == []


def test_a_listener_hears_lines_at_once():
    heard = []
    notices = Notices(heard.append)
    notices.add("a")
    assert (heard, notices.take()) == (["a"], [])
    notices.listen(None)
    notices.add("b")
    assert (heard, notices.take()) == (["a"], ["b"])


def test_progress_is_for_those_who_look_on():
    heard = []
    notices = Notices()
    notices.progress("compacting, 2 s")
    notices.listen(heard.append)
    notices.progress("compacting, 4 s")
    assert (heard, notices.take()) == (["compacting, 4 s"], [])
