"""Generates commands: families for each known class of tricks, and mutations of ordinary commands.

Everything comes from one seeded generator, so that a run can be repeated.
"""

import random
from collections.abc import Callable

from attacks.attempts import attempts

READERS = (
    "cat", "head", "tail -n 3", "wc -l", "uniq", "sort", "nl", "tac", "od -c", "grep .", "grep -r .",
    "cut -c1-9", "ls", "ls -la", "stat", "file", "md5sum", "echo", "strings", "jq .", "jq -R .",
    "sed -n 1p", "diff a", "cmp a", "rev", "column", "du", "find", "readlink", "paste", "comm a",
)  # fmt: skip
ORDINARY = (
    "ls -la src", "cat README.md a", "grep -rn 'def main' src", "grep foo *.py", "wc -l src/*.py",
    "find . -name '*.py' -type f", "sort -u a | uniq -c | sort -rn | head", "git status --short",
    "git log --oneline -5", "git diff -- src", "git show trunk:a", "git blame a", "git ls-files",
    "git branch -a", "git remote -v", "git grep -n foo", "git config --get user.name", "jq .name data.json",
    "jq -r '.list[] | tostring' data.json", "sed -n '1,3p' a", "test -f a && echo yes", "[ -d src ]",
    "printf '%s\\n' hi", "date +%F", "cat < a", "ls 2>/dev/null", "ls >/dev/null 2>&1", "diff -u a a.py",
    "head -5 a.py; pwd", "! grep -q foo a", "echo 'a > b' # comment", "stat a | cut -d: -f1", "tail -5 a",
    "find src -mtime -1 -maxdepth 2 -print", "du -sh src", "md5sum a payload", "strings -n 4 a", "file a",
    "command -v ls", "which cat", "cat 'x y'", "uniq -c a", "seq 3", "expr 1 + 1", "basename a/b .py",
)  # fmt: skip
FILES = (
    "a", "a.py", "README.md", "data.json", "payload", "1", "2", "link", "link/secret", "d/link/f", "dx",
    "late.json", "src/secret-link", "é", "list", "opts", "sums", "p.jq", "pwned", "../outside/secret", ".",
    "..", "src", "d", "~/.netrc", "~", "/etc/passwd", "-", "--", "'[e]'", "'x y'", "vendor", "../home",
    "project", "'.x|env'", "'a%n'", "99999999999", "２", "/dev/null", "/proc/self/environ", "-R", "-o",
)  # fmt: skip
STREAMS = (
    "",
    "",
    "1",
    "2",
    "0",
    "3",
    "007",
    "1000",
    "99999999999",
    "１",
    "２",
    "a",
    "{x}",
    "\\1",
    "''1",
)
ARROWS = (">", ">>", ">&", "&>", "&>>", "<", "<&", "<>", ">|", "<<<", ">&1 >", "2>&1>", "<<")
TARGETS = (
    "/dev/null", "1", "2", "pwned", "2", "２", "-", "1-", "link/secret", "/dev/null/", "'/dev/null'",
    "/dev/stdout", "/dev/fd/2", "a", "99999999999", "\"1\"", "1 2", "/dev/tcp/127.0.0.1/9", "\\2", "#x",
)  # fmt: skip
QUOTES = (
    '"', "'", '\\"', "\\'", "\\\\", "{a,link/secret}", "{pad/pad/in,./../outside/pwned}", "/../", "\\",
    "..", "/", "link", "secret", "outside", "$", "`", "''", '""', "{", "}", ",", "a", "{1..3}", "q", "pwned",
    "$'x'", '$"x"', "~", "[", "]", "*", "?", "\\\n", "\n", " ", ";", "#", "=", "d", "!", "&", "(", ")",
)  # fmt: skip
GLOBS = (
    "d", "l?nk", "[^z]ink", "[!z]ink", "[l]ink", "**", ".?", ".*", "?", "??", "*", "src", "'[d]'*", '"l"*nk',
    "l\\ink*", "link*", "l*", "..", ".", "f", "s*t", "secret", "*cret", "d*", "*.py", "?ink", "\\[e]*",
    "[[]e*", "[[:alpha:]]*", "li*k", "+(l)ink", "@(link)", "{d,link}", "*/f", "se?ret*", "-*", "[-]*", "*n",
)  # fmt: skip
OPTIONS = {
    "grep": "-R -r -f -e . x foo --include=* -d recurse --file=list -D read -P -z -o --exclude-from=list",
    "diff": "-r -N -u -q --from-file=link --to-file=a -y --no-dereference a link src d -s -l -x",
    "jq": "-n -f p.jq -nf env $ENV 'env' '.x|env' 'import \"config\" as $c {search:\"../outside\"}; $c'"
    " -L ../outside --slurpfile x --rawfile $x . -r input_filename --arg -s 'include \"env\"; f' '$__loc__'"
    " '@sh' -e --args --jsonargs --seq 'debug' --stream 'input' '[inputs]' 'getpath([\"a\"])' 'halt_error'",
    "strings": "@opts -a @list -n 4 -t x -T binary --target=x -f",
    "sort": "-o pwned -opwned --output=pwned -u -T . --files0-from=list0 --random-source=link/secret -R"
    " --compress-program=./program -S 1 -m -k1 -c --debug",
    "uniq": "-c -f 1 a pwned - -u +1 --count -w 3 -z",
    "find": ". -L -follow -H -name x -delete -exec cat {} + -fprint pwned -newer link/secret -printf %p"
    " -files0-from list0 -samefile -ls -type f -o link -regex .* ( ) ! -empty",
    "ls": "-L -R -LR -H --dereference -la link d --deref -d -Z --hyperlink -1",
    "du": "-L -a --files0-from=list0 -D -X list -h --exclude-from=list link",
    "wc": "-l --files0-from=list0 --files0-from list0 -c a link/secret",
    "md5sum": "-c sums --check sums --tag a -z --quiet --status -w",
    "sha256sum": "-c list --check --ignore-missing a",
    "cksum": "-c sums -a md5 --check a --raw",
    "file": "-f list -m list -C -z -L -s link a -b --files-from list -k",
    "date": "-f list -flist -r link/secret --file=list --reference=a -s now +%s -d now --set now -u 01010000",
    "tree": "-o pwned -l -R -H . -L 1 --fromfile list -a -f",
    "rg": "-L --follow --pre ./program -f list -z . x --files -uuu --hostname-bin=./program",
    "sed": "-n 1p -i -e w\\ pwned 1e\\ id -f list -s a -E 's/a/b/w pwned' '1,2p;3p' '$p' -z --debug",
    "test": "-v a[$(id)] 'a[$(touch pwned)]' -R x -f a * -eq 'x[$(touch pwned)]' -a -o -n ] ( )",
    "[": "-v 'a[$(touch pwned)]' -R x -f a * -eq ] -o",
    "printf": "%s %n a* -v x 'x[$(touch pwned)]' '%s%n' %b '\\x41' -- %q %* '%(%s)T' '%.*s'",
    "cut": "-d/ -f1 -c1 --output-delimiter=x -z a link/secret --complement",
    "tail": "-n 1 -c 5 a link/secret --retry -q -v +1 -1",
    "head": "-n 1 -c 5 -q a link/secret -1 --lines=2",
    "od": "-c -j 1 a link/secret --traditional -A x -S 3",
    "column": "-t -s: a link/secret -J --table-name=x -N a",
    "join": "a a link/secret -t: -o 1.1 -e x",
    "paste": "a link/secret -d/ -s - -z",
    "expr": "1 + 1 a : .* substr length index match -- +",
    "echo": "-e -n '\\x41' ../outside/* link/* ~/* * /etc/p* ~+ \\c",
    "which": "-a ls link/secret ../outside/* pwned",
    "type": "-a -t -P ls link/* f",
    "stat": "-L -f -c %N --printf=%n link a link/secret -t --cached=never",
    "readlink": "-f -e link d/link a -z",
    "realpath": "link a --relative-to=../outside -s ..",
    "command": "-v -V -p ls cat a ../outside/*",
    "hostname": "-F list pwned -f -I",
    "seq": "1 3 -f %g -s x -w -f %n",
    "tr": "a b -d -s [:lower:] x",
    "nl": "-b a -s x a link/secret",
    "comm": "a a -12 --check-order link/secret --output-delimiter=x",
    "fold": "-w 3 a link/secret -s",
    "fmt": "-w 9 a link/secret -u",
    "cat": "-A -v - a link/secret --show-all -- -n",
    "id": "-u root -Z -G", "df": "-h . link --output", "uname": "-a", "git": "--version",
}  # fmt: skip
GIT_WORDS = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "ls-files",
    "branch",
    "remote",
    "config",
    "describe",
    "grep",
    "rev-parse",
    "shortlog",
    "cat-file",
    "for-each-ref",
    "reflog",
    "stash",
    "tag",
    "name-rev",
    "show-ref",
    "rev-list",
    "diff-tree",
    "ls-tree",
    "worktree",
    "merge-base",
]
GIT_REST = [
    "-p",
    "--stat",
    "--ext-diff",
    "--textconv",
    "--output=pwned",
    "-O./program",
    "--no-index",
    "a",
    "link/secret",
    "one.txt",
    "--format=%GG",
    "--format=%G?",
    "--show-signature",
    "-1",
    "--short",
    "--dirty",
    "--always",
    "-v",
    "--get",
    "--list",
    "-l",
    "user.name",
    "http.extraheader",
    "url.x.insteadof",
    "--get-regexp",
    ".",
    "--all",
    "-S",
    "x",
    "-G",
    "x",
    "--submodule=diff",
    "--ignore-submodules=none",
    "HEAD",
    "trunk",
    "HEAD:one.txt",
    "trunk:a",
    ":/first",
    "--",
    ".",
    "..",
    "../outside",
    "/etc/passwd",
    "--cached",
    "-m",
    "-o",
    "--others",
    "--untracked",
    "list",
    "add",
    "drop",
    "new",
    "-d",
    "-D",
    "-f",
    "--edit",
    "--global",
    "--recurse-submodules",
    "--contents=link/secret",
    "-e",
    "-t",
    "--batch",
    "--filters",
    "--format=%(describe)",
    "--format=%(raw)",
    "--pretty=%x00",
    "--author=x",
    "-L1,2",
    "--follow",
    "--find-copies",
    "--word-diff=color",
    "--ita-visible-in-index",
    "-z",
    "--null",
    "--exclude-standard",
    "-u",
    "-uall",
    "--ignored",
    "--name-only",
    "--abbrev=4",
    "1&>/dev/null",
]
NOISE = "ls catuniqgrep-ohd'\"\\$(){}`<>|&;\n #*?[]=!~.,/12é２"

Random = random.Random


def _redirected(rng: Random) -> str:
    space = rng.choice(("", " ", "", "\t"))
    parts = [f"{rng.choice(STREAMS)}{rng.choice(ARROWS)}{space}{rng.choice(TARGETS)}"]
    if rng.random() < 0.3:
        parts.append(rng.choice(("2>&1", ">/dev/null", "&>/dev/null", "</dev/null")))
    before = rng.choice((" ", " ", "", "\\\n"))
    return f"{rng.choice(READERS)} {rng.choice(FILES)}{before}{' '.join(parts)}"


def _quoted(rng: Random) -> str:
    word = "".join(rng.choice(QUOTES) for _ in range(rng.randint(2, 9)))
    return f"{rng.choice(READERS)} {word}{rng.choice(('', '', ' a', ' 2>/dev/null'))}"


def _globbed(rng: Random) -> str:
    words = [
        "/".join(rng.choice(GLOBS) for _ in range(rng.randint(1, 4)))
        for _ in range(rng.randint(1, 2))
    ]
    return f"{rng.choice(READERS)} {' '.join(words)}"


def _optioned(rng: Random) -> str:
    name = rng.choice(list(OPTIONS))
    words = _split(OPTIONS[name])
    chosen = [rng.choice(words) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.5:
        chosen.append(rng.choice(FILES))
    if name == "[":
        chosen.append("]")
    return " ".join([name, *chosen])


def _split(text: str) -> list[str]:
    """Split at spaces outside of single quotes, keeping the quotes."""
    words, inside = [""], False
    for char in text:
        inside ^= char == "'"
        if char == " " and not inside:
            words.append("")
        else:
            words[-1] += char
    return [word for word in words if word]


def _git(rng: Random) -> str:
    words = ["git", rng.choice(("", "", "", "--no-pager", "-P", "-c x.y=z", "-C ."))]
    words += [rng.choice(GIT_WORDS), *(rng.choice(GIT_REST) for _ in range(rng.randint(0, 3)))]
    return " ".join(word for word in words if word)


def _ordinary(rng: Random) -> str:
    return rng.choice(ORDINARY)


def _joined(rng: Random) -> str:
    parts = [rng.choice(ORDINARY) for _ in range(rng.randint(2, 3))]
    return rng.choice((" | ", "; ", " && ", " || ", "\n", "|", "&&", " |& ", " & ", ";;")).join(
        parts
    )


def _mutated(rng: Random) -> str:
    text = list(rng.choice(ORDINARY) if rng.random() < 0.8 else _optioned(rng))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(4):
            case 0:
                text.insert(at, rng.choice(NOISE))
            case 1:
                text[at : at + 1] = []
            case 2:
                text[at : at + 1] = rng.choice(NOISE)
            case _:
                text[at:at] = f" {rng.choice(FILES)} "
    return "".join(text)


def _noise(rng: Random) -> str:
    return "".join(rng.choice(NOISE) for _ in range(rng.randint(3, 24)))


_ATTEMPTS = attempts()


def _attempted(rng: Random) -> str:
    return rng.choice(_ATTEMPTS)


FAMILIES: dict[str, tuple[Callable[[Random], str], int]] = {
    "redirections": (_redirected, 5),
    "quotes and braces": (_quoted, 5),
    "globs": (_globbed, 5),
    "options": (_optioned, 8),
    "git": (_git, 2),
    "ordinary": (_ordinary, 1),
    "joined": (_joined, 1),
    "mutations": (_mutated, 6),
    "noise": (_noise, 2),
    "attempts": (_attempted, 1),
}
"""Each family with its share."""


def make_command(rng: Random) -> tuple[str, str]:
    """Return a family's name and a command of it."""
    name = rng.choices(list(FAMILIES), [share for _, share in FAMILIES.values()])[0]
    return name, FAMILIES[name][0](rng)
