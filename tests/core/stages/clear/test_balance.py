"""What clearing may risk: a share of the bill, plus what it has saved."""

import pytest

from longhold.core.log.entries import Asked, Cleared, Compacted, Framed, Replied, Undone
from longhold.core.messages import Text, Usage
from longhold.core.models.prices import prices
from longhold.core.stages.clear.clear import CallStats

MODEL = "claude-opus-4-8"


def answered(n):
    usage = Usage(input_tokens=200_000)
    return Replied(n=n, response_id=f"r{n}", model=MODEL, content=(Text(text="Yes"),), usage=usage)


def cleared(n, cost_usd, saves_usd):
    return Cleared(n=n, ids=(), texts=(), cost_usd=cost_usd, saves_usd=saves_usd)


def balance_of(*history):
    balance = CallStats()
    for end in range(len(history) + 1):
        balance.follow(history[:end], 300.0)
    return balance


def test_the_stake_is_a_share_of_what_was_billed():
    balance = balance_of(answered(1), answered(2))
    assert balance.billed_usd > 0
    assert balance.stake_usd(0.1) == pytest.approx(0.1 * balance.billed_usd)


def test_a_clearing_uses_the_stake_up_and_earns_it_back_with_every_call():
    before = balance_of(answered(1))
    spent = balance_of(answered(1), cleared(2, 0.05, 0.02))
    earned = balance_of(answered(1), cleared(2, 0.05, 0.02), answered(3), answered(4), answered(5))
    assert spent.stake_usd(0.1) == pytest.approx(before.stake_usd(0.1) - 0.05)
    assert earned.saved_usd == pytest.approx(-0.05 + 3 * 0.02)


def test_a_clearing_while_the_cache_is_dead_earns_at_once():
    assert balance_of(answered(1), cleared(2, -0.3, 0.0)).saved_usd == pytest.approx(0.3)


@pytest.mark.parametrize(
    "end",
    [Undone(n=3, target=2), Compacted(n=3, first=1, last=1, summary=(Text(text="Short"),))],
)
def test_what_is_undone_or_compacted_away_earns_nothing_more(end):
    balance = balance_of(answered(1), cleared(2, 0.0, 0.02), end, answered(4))
    assert balance.saved_usd == 0


def test_an_answer_in_pieces_is_billed_once():
    piece = answered(1)
    assert balance_of(piece, piece).billed_usd == balance_of(piece).billed_usd


def test_an_hour_of_cache_costs_with_each_write_and_earns_with_each_pause():
    def called(n, at, usage):
        return Asked(n=n, at=at), Replied(
            n=n + 1, at=at, response_id=f"r{n}", model=MODEL, content=(), usage=usage
        )

    write = Usage(cache_write_tokens=40_000, cache_write_1h_tokens=40_000)
    held = (Framed(n=1, held=1), *called(2, 1.0, write))
    paused = (*held, *called(4, 601.0, Usage(cache_read_tokens=40_000)))
    listed = prices(MODEL)
    cost = (listed.write_1h - listed.write_5m) * 0.04
    earned = (listed.write_5m - listed.read) * 0.04
    assert balance_of(*held).saved_usd == pytest.approx(-cost)
    assert balance_of(*paused).saved_usd == pytest.approx(earned - cost)
