"""Tests do not depend on the machine: its programs, its user, its network."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from children.sitecustomize import NetworkForbidden

ELSEWHERE = ("192.0.2.1", 80)  # reserved for documentation


def test_only_the_programs_that_tests_need_are_found():
    assert [shutil.which(name) for name in ("npx", "node", "curl", "pip", "rg", "psql")] == [
        None
    ] * 6
    done = subprocess.run(["python3", "-c", "import sys; print(sys.prefix)"], capture_output=True)
    assert done.stdout.decode().strip() == sys.prefix


def test_the_home_is_empty():
    assert list(Path.home().iterdir()) == []
    assert Path.home() != Path(os.environ["LONGHOLD_HOME"])


def test_this_process_stays_on_this_machine():
    with socket.socket() as one, pytest.raises(NetworkForbidden):
        one.connect(ELSEWHERE)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("example.com", 80)


def test_a_child_stays_on_this_machine():
    code = f"import socket; socket.create_connection({ELSEWHERE}, timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NetworkForbidden" in done.stderr


def test_git_reaches_no_remote(tmp_path):
    address = f"http://{ELSEWHERE[0]}/x.git"
    done = subprocess.run(["git", "ls-remote", address], cwd=tmp_path, capture_output=True)
    assert b"not allowed" in done.stderr
