"""The page in a real browser: drawing, sorting, searching, zooming, and no foreign code."""

from dataclasses import replace

import pytest

from browser import chromium, needs_chromium
from command_line import longhold
from generated_sessions import write
from longhold.core.log.entries import Compacted, Ran, Replied, Said
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.settings import PageSettings
from longhold.core.view.window import window_for
from longhold.insight.pages.html import json_in_html, render, row_of
from longhold.insight.pages.session_data import session_data

MODEL = "claude-opus-4-5-20251101"
HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=2'></script><!--<script>"
    "<svg onload=window.hit=3>\x1b[31m]]>{data}{script} &lt;b&gt; \u2028 javascript:window.hit=4"
)

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """The page of a session with a compaction."""
    place = tmp_path_factory.mktemp("page")
    write(place / "session.jsonl", 3, 200, compactions=1)
    done = longhold("inspect", place / "session.jsonl", "--html", place / "session.html")
    assert done.returncode == 0, done.stderr
    return (place / "session.html").as_uri()


def hostile_history():
    usage = Usage(input_tokens=900, output_tokens=20)
    call = ToolUse(id="t1", name=HOSTILE, input={"command": HOSTILE})
    return [
        Said(n=1, at=1.0, content=(Text(text=HOSTILE),)),
        Replied(n=2, at=2.0, response_id="a", content=(call,), model=HOSTILE, usage=usage),
        Ran(n=3, at=3.0, tool_use_id="t1", content=HOSTILE, is_error=True),
        Replied(n=4, at=4.0, response_id="b", content=(Text(text=HOSTILE),), usage=usage),
        Compacted(n=5, at=5.0, first=1, last=4, summary=(Text(text=HOSTILE),), why=HOSTILE),
    ]


def column(browser, place, index):
    return browser.run(
        f"[...document.querySelectorAll('#{place} tbody tr')].map(r => r.cells[{index}].textContent)"
    )


def test_the_page_draws_itself_and_asks_for_nothing(browser, made_up):
    browser.open(made_up)
    assert browser.run("document.querySelectorAll('.uplot canvas').length") == 3
    there = browser.run("[...document.querySelectorAll('section')].map(s => s.id)")
    assert there[:4] == ["context", "cache", "money", "compactions"]
    assert {"calls", "words", "messages"} <= set(there)
    assert browser.complaints() == []
    assert browser.requested() == []


def test_the_plots_have_ink(browser, made_up):
    browser.open(made_up)
    colours = browser.run(
        """[...document.querySelectorAll('.uplot canvas')].map(c => {
          const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
          for (let i = 0; i < all.length; i += 4) if (all[i + 3] > 250) seen.add((all[i] << 16) | (all[i + 1] << 8) | all[i + 2]);
          return seen.size; })"""
    )
    assert min(colours) >= 3


def test_dragging_over_a_plot_zooms_all_of_them_and_reset_undoes_it(browser, made_up):
    browser.open(made_up)
    is_whole = "document.querySelector('.reset').hidden"
    picture = "document.querySelector('#money canvas').toDataURL()"
    assert browser.run(is_whole) is True
    browser.run(f"window.before = {picture}")
    browser.drag("#context .u-over", 0.3, 0.6)
    browser.wait(f"!{is_whole}")
    browser.wait(f"window.before !== {picture}")
    browser.run("document.querySelector('.reset').click()")
    assert browser.run(is_whole) is True
    browser.wait(f"window.before === {picture}")


def test_tables_sort_by_any_column(browser, made_up):
    browser.open(made_up)
    browser.run("document.querySelectorAll('#calls th button')[2].click()")
    shown = column(browser, "calls", 2)
    sizes = [float(x[:-1]) * 1e3 if x.endswith("K") else float(x) for x in shown]
    assert sizes == sorted(sizes, reverse=True)
    browser.run("document.querySelectorAll('#calls th button')[2].click()")
    assert browser.run("document.querySelectorAll('#calls th')[2].ariaSort") == "ascending"


def test_a_search_leaves_what_matches_and_marks_it(browser, made_up):
    browser.open(made_up)
    every = browser.run("document.querySelector('#messages .count').textContent")
    word = browser.run(
        "app.data.tables.messages.text.find(t => /[a-z]{7}/.test(t)).match(/[a-z]{7,}/)[0]"
    )
    browser.run(
        f"(s => {{ s.value = {word!r}; s.dispatchEvent(new Event('input')); }})(byId('search'))"
    )
    browser.wait("document.querySelector('#messages .count').textContent.includes(' of ')")
    assert browser.run("document.querySelectorAll('#messages mark').length") > 0
    browser.run("(s => { s.value = ''; s.dispatchEvent(new Event('input')); })(byId('search'))")
    browser.wait(f"document.querySelector('#messages .count').textContent === {every!r}")


def test_a_message_opens_and_the_next_one_follows(browser, made_up):
    browser.open(made_up)
    browser.run("document.querySelector('#messages tbody tr').click()")
    assert browser.run("byId('dialog').open") is True
    first = browser.run("byId('dialog').querySelector('pre').textContent")
    assert first == browser.run("app.data.tables.messages.text[0]")
    browser.run("byId('dialog').querySelector('[aria-label=Next]').click()")
    second = browser.run("byId('dialog').querySelector('pre').textContent")
    assert second == browser.run("app.data.tables.messages.text[1]")


def test_a_session_full_of_markup_does_nothing(browser, tmp_path):
    data = session_data(
        hostile_history(),
        id="<script>window.hit=5</script>",
        name=HOSTILE,
        format="test",
        window=window_for(MODEL),
        settings=PageSettings(),
        problems=[HOSTILE],
    )
    file = tmp_path / "hostile.html"
    file.write_text(
        render([replace(row_of(data), directory=HOSTILE)], {data.id: data}), encoding="utf-8"
    )
    browser.open(file.as_uri())
    browser.run("document.querySelector('#messages tbody tr').click()")
    text = browser.run("byId('dialog').querySelector('pre').textContent")
    assert text.startswith("<script>window.hit=1</script><img src=x")
    assert "{data}{script} &lt;b&gt;" in text
    assert browser.run("typeof window.hit") == "undefined"
    assert browser.run("document.querySelectorAll('main img, main svg, main script').length") == 0
    assert browser.complaints() == []
    assert browser.requested() == []


def test_no_markup_can_be_made_from_text(browser, made_up):
    browser.open(made_up)
    tried = browser.run(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; }"
        " catch (error) { return error.name; } })()"
    )
    assert tried == "TypeError"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_both_schemes(browser, made_up, scheme):
    browser.prefer(scheme)
    browser.size(390, 844, is_phone=True)
    try:
        browser.open(made_up)
        assert browser.run("document.documentElement.scrollWidth") == 390
        dark = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 27)"
        assert dark == (scheme == "dark")
    finally:
        browser.size(1280, 900)
        browser.prefer("light")


def test_data_cannot_end_its_script():
    assert "<" not in json_in_html({"a": "</script><!--"})
