"""The dream lock: one dream at a time, failures restore the time, dead holders are detected."""

import os
import signal

import pytest

from longhold.core.memory.dreaming import DreamBusy, DreamLock, LockState

RACERS = 50


@pytest.fixture
def lock(tmp_path, clock):
    """The lock of an empty directory."""
    return DreamLock(tmp_path, clock=clock)


def test_a_lock_never_taken_is_free(lock):
    assert lock.look() == LockState(time=0.0)
    assert lock.look().last == 0.0


def test_a_dream_that_succeeds_moves_the_time(lock, clock):
    with lock.hold():
        assert lock.look().pid == os.getpid()
        assert lock.look().last == 0.0
        clock.at += 60
    assert (lock.look().pid, lock.look().last) == (0, clock.at)


def test_a_dream_that_fails_puts_the_time_back(lock, clock):
    with lock.hold():
        pass
    then = clock.at
    clock.at += 90_000
    with pytest.raises(ValueError, match="bad dream"), lock.hold():
        raise ValueError("bad dream")
    assert lock.look() == LockState(time=then)


def test_the_second_is_told_who_dreams(lock):
    with lock.hold(), pytest.raises(DreamBusy, match=str(os.getpid())), lock.hold():
        pass


def test_whoever_looked_before_the_last_dream_comes_too_late(lock, clock):
    seen = lock.look()
    with lock.hold(seen):
        clock.at += 1
    with pytest.raises(DreamBusy, match="just finished a dream"), lock.hold(seen):
        pass


def test_a_killed_dream_frees_the_lock_and_does_not_count(lock, clock):
    with lock.hold():
        pass
    then = clock.at
    clock.at += 90_000
    _in_child(lambda: _hold_and_die(lock))
    held = lock.look()
    assert held.pid != 0 and held.last == then
    with lock.hold() as before:
        assert before.last == then
    assert lock.look().last == clock.at


def test_the_lock_of_a_dead_process_is_released_once_with_its_name(lock, clock):
    with lock.hold():
        pass
    then = clock.at
    clock.at += 90_000
    _in_child(lambda: _hold_and_die(lock))
    dead = lock.look()
    assert lock.release_dead() == dead
    assert lock.look() == LockState(time=then)
    assert lock.release_dead() is None
    with lock.hold():
        assert lock.release_dead() is None


def test_a_dream_that_does_not_count_leaves_the_time(lock, clock):
    with lock.hold(is_counted=False):
        assert lock.look().pid == os.getpid()
    assert lock.look() == LockState(time=0.0)


def test_a_live_holder_keeps_the_lock_however_old(lock, clock):
    with lock.hold():
        clock.at += 90_000
        with pytest.raises(DreamBusy), lock.hold():
            pass


def test_a_process_of_the_same_number_is_not_the_holder(lock, tmp_path):
    (tmp_path / ".dream-lock").write_text(f"{os.getpid()} 0.0")
    with lock.hold():
        pass


@pytest.mark.parametrize("text", ["", "nonsense", "12", "\ufffd \ufffd \ufffd", "1 2 3 4"])
def test_a_lock_nobody_can_read_is_free(lock, tmp_path, text):
    (tmp_path / ".dream-lock").write_text(text)
    with lock.hold():
        pass


def test_of_fifty_racing_processes_exactly_one_dreams(tmp_path):
    lock = DreamLock(tmp_path)
    seen = lock.look()
    begin, start = os.pipe()
    racers = [_fork(lambda: _race(lock, seen, begin, start)) for _ in range(RACERS)]
    os.close(begin)
    os.close(start)  # closing the last writing end starts them all
    results = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in racers]
    assert sorted(results) == [0, *[3] * (RACERS - 1)]


def _race(lock, seen, begin, start):
    os.close(start)
    os.read(begin, 1)
    try:
        with lock.hold(seen):
            return 0
    except DreamBusy:
        return 3


def _hold_and_die(lock):
    with lock.hold():
        os.kill(os.getpid(), signal.SIGKILL)


def _fork(work):
    pid = os.fork()
    if not pid:
        code = 9
        try:
            code = work() or 0
        finally:
            os._exit(code)
    return pid


def _in_child(work):
    os.waitpid(_fork(work), 0)
