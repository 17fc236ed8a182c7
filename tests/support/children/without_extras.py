"""Run command lines in a process where some packages cannot be imported; print what happened."""

import contextlib
import io
import json
import sys
import traceback


class Without:
    """A finder that does not find some packages, as if they were not installed."""

    def __init__(self, finder, packages):
        self._finder, self._packages = finder, packages

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self._packages:
            return None
        return self._finder.find_spec(name, path, target)


def hide(packages):
    sys.meta_path[:] = [Without(finder, set(packages)) for finder in sys.meta_path]


def run(words):
    from longhold.cli import main

    out, err = io.StringIO(), io.StringIO()
    code, trace = 0, ""
    sys.stdin = io.TextIOWrapper(io.BytesIO())
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as error:
        code = error.code or 0
    except Exception:  # noqa: BLE001 - whatever it is, the test must see it
        code, trace = 1, traceback.format_exc()
    return {"words": words, "code": code, "out": out.getvalue(), "err": err.getvalue() + trace}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    hide(given["missing"])
    sys.stdout.write(json.dumps([run(words) for words in given["lines"]]))
