"""Spending by purpose, and the limits."""

import resource
import time
from datetime import UTC, datetime

import pytest

from longhold.core.log.entries import Forked, Replied
from longhold.core.log.spending import Budget, FileLedger, sum_spending
from longhold.core.messages import Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.settings import BudgetSettings

MODEL = "claude-opus-4-6"
USAGE = Usage(
    input_tokens=1_000, cache_read_tokens=10_000, cache_write_tokens=2_000, output_tokens=500
)


def test_an_answer_is_priced_by_its_kinds_of_tokens():
    spent = price_call(MODEL, USAGE)
    assert spent.usd == pytest.approx((1_000 * 5 + 10_000 * 0.5 + 2_000 * 6.25 + 500 * 25) / 1e6)
    assert spent.total_tokens == 13_500


def test_a_model_without_a_price_counts_its_tokens():
    spent = price_call("nobody-knows-me", USAGE)
    assert (spent.usd, spent.total_tokens) == (0.0, 13_500)


def test_an_answer_in_pieces_is_paid_for_once():
    pieces = [Replied(n=n, response_id="r", model=MODEL, content=(), usage=USAGE) for n in (1, 2)]
    assert sum_spending(pieces) == price_call(MODEL, USAGE)


def test_spending_adds_up():
    one = price_call(MODEL, USAGE)
    assert (one + one).calls == 2
    assert (one + one).usd == pytest.approx(2 * one.usd)
    assert (one + Tally()).total_tokens == one.total_tokens


def test_a_session_has_limits_in_money_and_in_tokens():
    budget = Budget(BudgetSettings(max_usd=0.01))
    assert budget.describe_limit() == ""
    budget.pay(MODEL, USAGE)
    assert budget.describe_limit().startswith(
        "the session's limit of $0.01 is reached: $0.0350 for 1 answers"
    )
    budget = Budget(BudgetSettings(max_tokens=13_500))
    budget.pay(MODEL, USAGE)
    assert "13,500 tokens is reached" in budget.describe_limit()


def test_a_day_is_shared_by_all_sessions():
    first = Budget(BudgetSettings())
    first.pay(MODEL, USAGE)
    with next(first.ledger.directory.glob("*.jsonl")).open("ab") as ledger:
        ledger.write(b'\n{"usd": 3')
    second = Budget(BudgetSettings(max_usd_per_day=0.03))
    assert second.session == Tally()
    assert second.day().calls == 1
    assert second.describe_limit().startswith("the day's limit of $0.03 is reached")
    second.pay(MODEL, USAGE)
    assert second.day().calls == 2


def test_forks_are_spent_too():
    forks = [Forked(n=n, source="notes", model=MODEL, usage=USAGE) for n in (1, 2)]
    assert sum_spending(forks) == price_call(MODEL, USAGE) + price_call(MODEL, USAGE)


def test_a_past_answer_is_priced_at_its_day():
    long = Usage(input_tokens=300_000)
    then, now = (
        Replied(n=1, at=at, response_id="r", model=MODEL, content=(), usage=long)
        for at in (datetime(2026, 3, 1, tzinfo=UTC).timestamp(), time.time())
    )
    assert sum_spending([then]).usd == pytest.approx(2 * sum_spending([now]).usd)


def test_a_ledger_that_cannot_be_written_costs_no_answer(tmp_path):
    (tmp_path / "spent").write_text("in the way")
    budget = Budget(
        BudgetSettings(max_tokens_per_day=20_000), ledger=FileLedger(tmp_path / "spent")
    )
    budget.pay(MODEL, USAGE)
    assert "the day's spending cannot be recorded" in budget.problem
    assert budget.describe_limit() == ""
    budget.pay(MODEL, USAGE)
    assert "27,000" in budget.describe_limit()
    (tmp_path / "spent").unlink()
    budget.pay(MODEL, USAGE)
    assert budget.problem == ""
    assert Budget(BudgetSettings(), ledger=FileLedger(tmp_path / "spent")).day().calls == 3


def test_a_line_that_the_disk_cut_short_is_written_again(tmp_path):
    budget = Budget(BudgetSettings(), ledger=FileLedger(tmp_path / "spent"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        budget.pay(MODEL, USAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "the day's spending cannot be recorded" in budget.problem
    budget.pay(MODEL, USAGE)
    assert Budget(BudgetSettings(), ledger=FileLedger(tmp_path / "spent")).day().calls == 2
