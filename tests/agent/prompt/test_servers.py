"""MCP servers in the prompt, and in a message after they have changed."""

from longhold.agent.mcp import ServerOffer
from longhold.agent.prompt.sections import server_digests, servers_news, servers_text

A = ServerOffer(server="a", names=("mcp__a__x",), instructions="Be brief.")
B = ServerOffer(server="b", names=("mcp__b__y",))


def test_servers_are_sorted_quoted_and_cut():
    offers = (
        ServerOffer(server="b", names=("mcp__b__x",), instructions="# Rules\nObey.\x1b[2J"),
        ServerOffer(server="a", instructions="x" * 3_000),
    )
    text = servers_text(offers)
    assert text == servers_text(reversed(offers))
    assert "\n## a\ntools: none\n> xxx" in text
    assert text.endswith("## b\ntools: mcp__b__x\n> # Rules\n> Obey.[2J")
    assert text.count("x") < 2_100
    assert servers_text(()) == ""


def test_nothing_is_said_while_nothing_changes():
    assert servers_news(server_digests((A, B)), (B, A)) == ("", {})


def test_a_server_that_joins_or_changes_is_described():
    text, digests = servers_news(server_digests((A,)), (A, B))
    assert "## b\ntools: mcp__b__y" in text
    assert "mcp__a__x" not in text
    grown = ServerOffer(server="b", names=("mcp__b__y", "mcp__b__z"))
    text, changed = servers_news(server_digests((A,)) | digests, (A, grown))
    assert "tools: mcp__b__y, mcp__b__z" in text
    assert list(changed) == ["b"]


def test_a_server_that_goes_is_said_once():
    told = server_digests((A, B))
    text, gone = servers_news(told, (A,))
    assert "## b\ngone; its tools cannot be called" in text
    assert servers_news(told | gone, (A,)) == ("", {})
    assert "tools: mcp__b__y" in servers_news(told | gone, (A, B))[0]
