"""Names that become file names, branches and senders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.subagents.names import check_agent_name, is_name, is_session
from longhold.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    ["../up", "a/b", "a\n", "\na", "", ".", "..", "-a", "a b", "a\0", "ä", "a" * 65, "a:b", "a.b"],
)
def test_what_leads_elsewhere_is_no_name(text):
    assert not is_name(text)
    with pytest.raises(ConfigError, match="cannot name a team"):
        check_agent_name(text, "a team")


@pytest.mark.parametrize("text", ["user", "User", "SYSTEM", "main", "all", "assistant", "Lead"])
def test_nobody_can_be_called_like_the_user(text):
    with pytest.raises(ConfigError, match="is reserved"):
        check_agent_name(text, "an agent")


@given(st.text(max_size=80))
def test_a_name_is_one_part_of_a_path(text):
    if is_name(text):
        assert text.isascii() and text.replace("-", "").replace("_", "").isalnum()
        assert len(text) <= 64


@pytest.mark.parametrize("text", ["../x", "a/b", "a\n", "", ".hidden"])
def test_a_session_is_named_within_its_directory(text):
    assert not is_session(text)
    assert is_session("20250101-120000-ab12cd34")
