"""What a history shows about calls and the cache."""

from longhold.core.log.entries import Asked, Compacted, Failed, Forked, Framed, Replied, Switched
from longhold.core.messages import Text, Usage
from longhold.core.stages.clear.clear import CallStats


def counted(*entries):
    tally = CallStats()
    tally.follow([_numbered(entry, n) for n, entry in enumerate(entries, 1)], 300.0)
    return tally


def _numbered(entry, n):
    return type(entry)(
        **{name: getattr(entry, name) for name in entry.__struct_fields__} | {"n": n}
    )


def replied(id, **fields):
    return Replied(response_id=id, content=(), **fields)


def test_an_answer_in_pieces_is_one_call():
    assert counted(replied("a"), replied("a"), replied("b")).calls == 2


def test_a_call_after_the_lifetime_is_cold():
    assert counted(Asked(at=1_000.0), Asked(at=1_299.0), Asked(at=1_599.0)).cold_calls == 1


def test_a_switch_to_the_same_model_voids_nothing():
    asked, again = Asked(at=5.0), Switched(model="m")
    assert not counted(Switched(model="m"), asked, again).may_be_void()
    assert (
        counted(Switched(model="m"), asked, Switched(model="n")).void_by == "another model answers"
    )


def test_a_new_frame_and_a_compaction_void_the_cache_until_the_next_call():
    compacted = Compacted(first=1, last=1, summary=(Text(text="so"),))
    for entry in (Framed(), compacted):
        assert counted(Asked(at=5.0), entry).may_be_void()
        assert not counted(Asked(at=5.0), entry, Asked(at=6.0)).may_be_void()


def test_deletions_and_their_failure_are_known_from_the_log():
    usage = Usage(input_tokens=1, extra={"cache_deleted_input_tokens": 5})
    assert counted(replied("a", usage=usage)).has_deleted
    assert counted(Failed(what="cache edits", error="no")).edits_failed
    assert not counted(Failed(what="model", error="no")).edits_failed


def test_each_entry_is_counted_once():
    tally, history = CallStats(), [replied("a")]
    tally.follow(history, 300.0)
    tally.follow(history, 300.0)
    history.append(replied("b"))
    tally.follow(history, 300.0)
    assert tally.calls == 2


def test_an_imported_session_tells_when_its_answer_came():
    assert counted(replied("a", at=77.0)).began == 77.0


def test_a_fork_that_read_the_cache_renews_it():
    asked, read = Asked(at=1_000.0), Usage(cache_read_tokens=9)
    fork = Forked(source="notes", usage=read, at=1_250.0, seconds=10.0)
    assert counted(asked, fork).began == 1_240.0
    assert counted(asked, Forked(source="notes", usage=Usage(), at=1_250.0)).began == 1_000.0
    assert counted(asked, Forked(source="agent:a", usage=read, at=1_250.0)).began == 1_000.0
