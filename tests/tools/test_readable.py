"""Pages as text."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.readable import readable_text

PAGE = """<!doctype html><html><head><title>The  page</title><style>p { x }</style>
<script>if (a < b) { "</p>" }</script></head><body>
<nav><a href="/home">Home</a></nav>
<h1>Heading</h1>
<p>Some   <b>bold</b> text,
 and a <a href="sub/page.html">link</a>.</p>
<ul><li>one</li><li>two &amp; three</li></ul>
<pre>def f():
    return 1
</pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<img src="x.png" alt="A picture"><form>Name: <input></form>
</body></html>"""


def test_what_a_reader_sees_is_kept_and_the_machinery_is_not():
    """Headings, links, lists, code and rows."""
    assert readable_text(PAGE, "http://host/dir/index.html") == (
        "# The page\n\nHome (http://host/home)\n\n# Heading\n\n"
        "Some bold text, and a link (http://host/dir/sub/page.html).\n\n"
        "- one\n- two & three\n\n```\ndef f():\n    return 1\n\n```\n\n"
        " | a | b\n | 1 | 2\n\n[A picture]"
    )


@given(st.text(alphabet="<>/abpre\"'= !-&;", max_size=60))
def test_no_page_breaks_the_reader(page):
    """Broken HTML gives what can be read of it."""
    assert isinstance(readable_text(page), str)


def test_an_unclosed_script_does_not_swallow_what_follows_its_parent():
    """Skipping ends with the element that began it."""
    assert readable_text("<form><select><option>x</form><p>text</p>") == "text"
