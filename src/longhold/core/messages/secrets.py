"""Find and mask secrets in text, with the gitleaks rules of `secretscreen` and more.

Detection is not complete, because a password in a sentence looks like any other word.
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

Mask: TypeAlias = Callable[[str], str]  # removes secrets from a text

LEAD = r"[\w.-]{0,50}?"  # Prefix of rules that allow a name before the value. It matches any text.

_NAME_BEFORE = re.compile(r"[\w.-]{0,50}\Z", re.ASCII)
_LOGIN = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://([^\s/@:'\"]{0,100}:([^\s/@'\"]{1,200}))@", re.I)

_PREFIXES = (
    r"ya29\.|GOCSPX-|1//0|xox[a-z](?:\.xox[a-z])?-|whsec_|hf_|gsk_|xai-|r8_|csk-|tvly-|sk-lf-|lsv2_[a-z]{2}_"
    r"|pcsk_|sbp_|sb_secret_|nf[pc]_|ntn_|figd_|ATATT3|ops_ey|dckr_[po]at_|NRAK-|sntry[su]_|rnd_|napi_|tgp_v1_"
    r"|nvapi-|e2b_|ph[xc]_|ABSK|jina_|sk\.ey|tskey-|sess-|HRKU-|AGE-SECRET-KEY-1"
)
_TOKENS = (
    ("anthropic-oauth-token", "sk-ant-", r"\bsk-ant-(?:oat|ort|sid|admin)\d\d-[\w-]{20,200}"),
    ("openai-api-key", "sk-", r"\bsk-(?:proj|svcacct|admin)-[\w-]{40,220}"),
    ("openai-api-key", "sk-", r"\bsk-[A-Za-z0-9]{48}\b"),
    (
        "api-key-header",
        "-",
        r"(?i:\bx-api-key|\bapi-key)['\"]?\s{0,4}:\s{0,4}['\"]?([\w.~+/-]{16,400})",
    ),
    ("command-password", "sshpass", r"\bsshpass\s{1,4}-p\s{0,4}['\"]?([^\s'\"$]{6,200})"),
    (
        "command-password",
        "mysql",
        r"\bmysql\w{0,8}\s(?:[^\n|;&]{0,200}?\s)?-p['\"]?([^\s'\"$]{6,200})",
    ),
    (
        "json-password",
        '": ',
        r"\"(?i:[\w-]{0,30}(?:passw(?:or)?d|passphrase|secret))\":\s{0,4}\"([^\"\s$<{]{6,200})\"",
    ),
    ("openrouter-api-key", "sk-or-", r"\bsk-or-v1-[0-9a-f]{64}\b"),
    ("bearer-token", "earer ", r"\b[Bb]earer\s{1,4}([\w.~+/-]{20,2000}=*)"),
    ("netrc-password", "password", r"\blogin\s{1,10}\S{1,200}\s{1,10}password\s{1,10}(\S{6,200})"),
    ("telegram-bot-token", ":AA", r"\b\d{8,10}:AA[\w-]{33}(?![\w-])"),
    ("service-token", "", rf"\b(?:{_PREFIXES})(?=(?:[^\s\d]{{0,60}}\d){{2}})[\w.~+/%=-]{{20,400}}"),
    ("discord-token", ".", r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])"),
    ("sentry-dsn", "://", r"://([0-9a-f]{32})@"),
    ("page-key", "/longhold/sessions/", r"/longhold/sessions/([\w-]{32,64})"),
    ("service-token", "", r"\b(?:sk[-_]|fc-|key-)[0-9a-f]{32,48}\b"),
    ("basic-login", "Basic ", r"uthorization\W{1,6}Basic\s{1,4}([A-Za-z0-9+/]{10,2000}={0,2})"),
    ("cookie", "ookie: ", r"\b[Cc]ookie: {1,4}([^\r\n'\"]{20,4000})"),
    (
        "password-option",
        "--",
        r"(?<![\w-])--(?:password|passphrase|api-key|token|secret)[ =]([\w.!@#%^&*+-]{8,200})",
    ),
    (
        "password",
        "",
        r"(?i:passw(?:or)?d|passphrase|_pass)['\"]?\s?[=:]\s?['\"]?([\w.!@#%^&*+~/-]{10,200})(?![\w(.\[])",
    ),
    ("url-signature", "=", r"[?&](?:sig|secret|access_token|X-Amz-Signature)=([\w%+/.-]{16,400})"),
    (
        "putty-private-key",
        "Private-Lines",
        r"Private-Lines: \d{1,3}\s{1,2}((?:[\w+/=]{1,64}\s{0,2}){1,100})",
    ),
)
"""Name, required substring and pattern of secrets that the gitleaks rules miss."""
_NAMED = {"netrc-password": 0.0, "command-password": 2.0, "json-password": 2.0}
"""Minimum entropy by rule. The position marks these as passwords, so even words may match."""
LEAST_TOKEN_ENTROPY = 3.0  # in bits per character, more than `your-token-goes-here` has

_KEY_EDGE = re.compile(r"-----(BEGIN|END)[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16}")  # matches each line of a key and few other lines
_BESIDE_KEY = re.compile(r"\s*(?:[\w-]+: .*|[\w+/=]{0,15})\s*")
"""Other lines that a key may contain: a header, a short last line or an empty line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecret:
    rule: str
    start: int
    end: int


def find_secrets(text: str) -> list[FoundSecret]:
    """Return the secrets in a text, in order and without overlaps."""
    apart: list[FoundSecret] = []
    # Of two matches at one position, the more specific rule wins, and then the longer match.
    found = sorted(_find_all(text), key=lambda f: (f.start, f.rule.startswith("generic"), -f.end))
    for one in found:
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
        elif one.end > apart[-1].end:
            apart[-1] = replace(apart[-1], end=one.end)
    return apart


def mask_secrets(text: str) -> str:
    found = find_secrets(text)
    if not found:
        return text
    parts: list[str] = []
    done = 0
    for one in found:
        parts += [text[done : one.start], f"[secret: {one.rule}]"]
        done = one.end
    return "".join([*parts, text[done:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """Patterns for an allowed secret, match or line, and words that an allowed secret contains."""

    target: str
    sources: tuple[str, ...]
    words: tuple[str, ...]

    def lets_pass(self, text: str, match: re.Match[str], secret: str) -> bool:
        seen = secret
        if self.target == "match":
            lead = _NAME_BEFORE.search(text, max(0, match.start() - 50), match.start())
            seen = (lead[0] if lead else "") + match[0]
        elif self.target == "line":
            seen = text[text.rfind("\n", 0, match.start()) + 1 : match.end()]
        lowered = secret.lower()
        is_known = any(_compile(source).search(seen) for source in self.sources)
        return is_known or any(word in lowered for word in self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    name: str
    source: str
    keywords: tuple[str, ...]
    starts_at_keyword: bool
    least_entropy: float
    group: int
    allowed: tuple[_Allowed, ...]

    def matches(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        pattern = _compile(self.source)
        if not self.starts_at_keyword:
            yield from pattern.finditer(text)
            return
        for keyword in self.keywords:
            place = lowered.find(keyword)
            while place >= 0:
                if match := pattern.match(text, place):
                    yield match
                place = lowered.find(keyword, place + 1)

    def place(self, match: re.Match[str]) -> tuple[int, int]:
        groups = [self.group] if self.group else range(1, (match.re.groups or 0) + 1)
        return next((match.span(g) for g in groups if match[g]), match.span())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    rules: tuple[_Rule, ...]
    keywords: Mapping[str, tuple[int, ...]]
    breaks: Mapping[int, str]
    allowed: _Allowed


def _find_all(text: str) -> Iterator[FoundSecret]:
    rules = _load()
    lowered = _lower(text)
    words = " ".join(set(lowered.translate(rules.breaks).split()))
    asked = {n for keyword, numbers in rules.keywords.items() if keyword in words for n in numbers}
    for rule in (rules.rules[n] for n in sorted(asked)):
        for match in rule.matches(text, lowered):
            start, end = rule.place(match)
            secret = text[start:end]
            if _entropy(secret) > rule.least_entropy and not any(
                one.lets_pass(text, match, secret) for one in (rules.allowed, *rule.allowed)
            ):
                yield FoundSecret(rule=rule.name, start=start, end=end)
    yield from _tokens(text)
    yield from _logins(text, rules)
    yield from _cut_keys(text)


def _tokens(text: str) -> Iterator[FoundSecret]:
    for name, mark, source in _TOKENS:
        for match in _compile(source).finditer(text) if mark in text else ():
            start, end = match.span(match.re.groups)
            least = _NAMED.get(name, LEAST_TOKEN_ENTROPY)
            if _entropy(text[start:end]) > least and any(c.isdigit() for c in text[start:end]):
                yield FoundSecret(rule=name, start=start, end=end)


def _cut_keys(text: str) -> Iterator[FoundSecret]:
    edges = list(_KEY_EDGE.finditer(text)) if "PRIVATE KEY" in text else []
    for i, edge in enumerate(edges):
        before = edges[i - 1] if i else None
        after = edges[i + 1] if i + 1 < len(edges) else None
        start, end = edge.span()
        if edge[1] == "BEGIN" and (after is None or after[1] == "BEGIN"):
            lines = text[end : after.start() if after else None].splitlines(True)
            end += len(text[end : end + _key_chars(lines)].rstrip("\r\n"))
        elif edge[1] == "END" and (before is None or before[1] == "END"):
            lines = text[before.end() if before else 0 : start].splitlines(True)
            start -= _key_chars(lines[::-1])
        if (start, end) != edge.span():
            yield FoundSecret(rule="private-key", start=start, end=end)


def _key_chars(lines: Sequence[str]) -> int:
    chars, of_key = 0, 0
    for line in lines:
        chars += len(line)
        if _OF_KEY.search(line):
            of_key = chars
        elif not _BESIDE_KEY.fullmatch(line):
            return of_key
    return chars if of_key else 0


def _logins(text: str, rules: _Rules) -> Iterator[FoundSecret]:
    """Find passwords in URLs, except the placeholders that the rule for `curl` allows."""
    if "://" not in text or "@" not in text:
        return
    from secretscreen import audit_pair

    placeholders = [
        one for rule in rules.rules if rule.name == "curl-auth-user" for one in rule.allowed
    ]
    for match in _LOGIN.finditer(text):
        is_placeholder = any(one.lets_pass(text, match, match[1]) for one in placeholders)
        if not is_placeholder and audit_pair("url", match[0] + "host"):
            yield FoundSecret(rule="url-password", start=match.start(2), end=match.end(2))


def _lower(text: str) -> str:
    """Lowercase a text without changing its length, although some lowercase letters are longer."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower()[0] for c in text)


def _entropy(secret: str) -> float:
    counts = [secret.count(c) / len(secret) for c in set(secret)]
    return -sum(share * math.log2(share) for share in counts)


def _rule_file() -> Path:
    """Locate the rules without importing their package, because the import is slow."""
    spec = find_spec("secretscreen")
    assert spec and spec.submodule_search_locations, "secretscreen is a dependency"
    return Path(spec.submodule_search_locations[0], "gitleaks.toml")


@lru_cache(maxsize=1)
def _load() -> _Rules:
    listed = tomllib.loads(_rule_file().read_text("utf-8"))
    rules = tuple(_rule(one) for one in listed["rules"] if "regex" in one and "path" not in one)
    keywords: dict[str, tuple[int, ...]] = {}
    for number, rule in enumerate(rules):
        for keyword in rule.keywords:
            keywords[keyword] = (*keywords.get(keyword, ()), number)
    kept = set("".join(keywords))
    breaks = {code: " " for code in range(128) if chr(code) not in kept}
    return _Rules(
        rules=rules, keywords=keywords, breaks=breaks, allowed=_allow(listed["allowlist"])
    )


def _rule(listed: Mapping[str, Any]) -> _Rule:
    """Convert a rule and remove its `LEAD`. `lets_pass` checks the text before it."""
    source = listed["regex"].replace(LEAD, "", 1)
    return _Rule(
        name=listed["id"],
        source=source,
        keywords=tuple(listed["keywords"]),
        starts_at_keyword=_starts_at(source, listed["keywords"]),
        least_entropy=listed.get("entropy", -1.0),
        group=listed.get("secretGroup", 0),
        allowed=tuple(_allow(one) for one in listed.get("allowlists", ()) if "paths" not in one),
    )


def _allow(listed: Mapping[str, Any]) -> _Allowed:
    return _Allowed(
        target=listed.get("regexTarget", "secret"),
        sources=tuple(listed.get("regexes", ())),
        words=tuple(word.lower() for word in listed.get("stopwords", ())),
    )


@cache
def _compile(source: str) -> re.Pattern[str]:
    """Compile a Go pattern on first use, because compiling all rules takes 0.1 s."""
    return re.compile(_scope_flags(source.replace(r"\z", r"\Z")), re.ASCII)


def _scope_flags(source: str) -> str:
    place = source.find("(?i)", 1)
    if place < 0:
        return source
    depth, end, in_class = 0, place + 4, False
    while end < len(source):
        char = source[end]
        if char == "\\":
            end += 1
        elif in_class or char == "[":
            in_class = char != "]"
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth < 0:
                break
        end += 1
    return _scope_flags(f"{source[:place]}(?i:{source[place + 4 : end]}){source[end:]}")


def _starts_at(source: str, keywords: list[str]) -> bool:
    rest = source.removeprefix("(?i)").removeprefix(r"\b").replace("(?-i:", "").lower()
    rest = re.sub(r"\[(\w)\1\]", r"\1", rest)
    if opened := re.match(r"(?:\(\?:|\()+", rest):
        inner, _, tail = rest[opened.end() :].partition(")")
        ways = [way + tail for way in inner.split("|")]
    else:
        ways = [rest]
    return all(way.replace("\\", "").startswith(tuple(keywords)) for way in ways)
