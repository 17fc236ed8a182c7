"""Secrets: what is found, what is left alone, and how a masked text looks."""

import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longhold
import longhold.core.log.log
from longhold.core.messages.secrets import FoundSecret, find_secrets, mask_secrets

RANDOM = "q7Zk2XvB9mTn4RwL8sJd3FhG6pYc1UeA5oKiVbNxMtQrWzEyHuDjSfPgLaCk0T" * 3
LOWER = RANDOM.lower()
DIGITS = "480215937640128357961024"

SECRETS = {
    "aws-access-token": "AKIA" + "Z7QKX2VBMTN4RWLS",
    "github-pat": "ghp_" + RANDOM[:36],
    "github-fine-grained-pat": "github_pat_" + RANDOM[:82],
    "anthropic-api-key": "sk-ant-api03-" + RANDOM[:93] + "AA",
    "openai-api-key": "sk-proj-" + RANDOM[:74] + "T3BlbkFJ" + RANDOM[5:79],
    "slack-bot-token": f"xoxb-{DIGITS[:12]}-{DIGITS[12:]}-{RANDOM[:24]}",
    "stripe-access-token": "sk_live_" + RANDOM[:24],
    "gcp-api-key": "AIza" + RANDOM[:35],
    "npm-access-token": "npm_" + LOWER[:36],
    "pypi-upload-token": "pypi-AgEIcHlwaS5vcmc" + RANDOM[:80],
    "gitlab-pat": "glpat-" + RANDOM[:20],
    "authress-service-client-access-key": f"sc_{LOWER[:10]}.{LOWER[:5]}.acc_{LOWER[:12]}.{LOWER[:40]}",
    "doppler-api-token": "dp.pt." + RANDOM[:43],
    "anthropic-oauth-token": "sk-ant-oat01-" + RANDOM[:93] + "AA",
    "openrouter-api-key": "sk-or-v1-" + "3f9a6c0e1b7d2485" * 4,
    "telegram-bot-token": DIGITS[:10] + ":AA" + RANDOM[:33],
    "discord-token": f"M{RANDOM[:25]}.{RANDOM[:6]}.{RANDOM[:38]}",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join([RANDOM[:64]] * 6)
    + "\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("rule", SECRETS)
def test_a_secret_is_replaced_by_the_name_of_its_rule(rule):
    assert mask_secrets(f"it was {SECRETS[rule]} then") == f"it was [secret: {rule}] then"


def test_keys_in_addresses_are_masked():
    key = RANDOM[:43]
    page = mask_secrets(f"http://127.0.0.1:8788/longhold/sessions/{key}/")
    assert page == "http://127.0.0.1:8788/longhold/sessions/[secret: page-key]/"
    assert "3f9a6c0e" not in mask_secrets(f"https://{'3f9a6c0e1b7d2485' * 2}@o1.ingest.io/1")


@pytest.mark.parametrize("kind", ["proj", "svcacct", "admin"])
def test_keys_without_the_old_mark_in_their_middle_are_masked(kind):
    assert mask_secrets(f"use sk-{kind}-{RANDOM[:120]} now") == "use [secret: openai-api-key] now"


PREFIXES = (
    "ya29. GOCSPX- 1//0 xoxc- xoxe.xoxp- whsec_ hf_ gsk_ xai- r8_ csk- tvly-dev- sk-lf- lsv2_pt_ pcsk_ sbp_"
    " sb_secret_ nfp_ ntn_ figd_ ATATT3 ops_ey dckr_pat_ dckr_oat_ NRAK- sntrys_ rnd_ napi_ tgp_v1_ nvapi-"
    " e2b_ phx_ ABSK jina_ sk.ey tskey- sess- HRKU- AGE-SECRET-KEY-1"
)


@pytest.mark.parametrize("prefix", PREFIXES.split())
def test_keys_of_services_are_known_by_how_they_begin(prefix):
    assert mask_secrets(f"use {prefix}{RANDOM[:44]} now") == "use [secret: service-token] now"
    assert RANDOM[:20] not in mask_secrets(f"export X='{prefix}{RANDOM[:44]}'")
    assert (
        mask_secrets(f"call {prefix}a_function_of_a_long_name")
        == f"call {prefix}a_function_of_a_long_name"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Basic {}==",
        "Cookie: theme=dark; session={}",
        "Set-Cookie: connect.sid=s%3A{}; Path=/",
        "run it with --password {}",
        "run it with --api-key={}",
        '{{"password": "{}"}}',
        "DB_PASS={}",
        "https://a.example/c?sv=2022&sig={}%3D",
        "otpauth://totp/x?secret={}",
        "Private-Lines: 2\n{}\n",
    ],
)
def test_secrets_are_known_by_what_stands_before_them(text):
    assert RANDOM[:20] not in mask_secrets(text.format(RANDOM[:40]))


def test_tokens_are_masked_where_their_name_stands_before_them():
    header = f"Authorization: Bearer {RANDOM[:40]}"
    assert mask_secrets(header) == "Authorization: Bearer [secret: bearer-token]"
    netrc = "machine example.org\n  login bob\n  password hunter2secret"
    assert mask_secrets(netrc).endswith("password [secret: netrc-password]")
    for text in (
        "the bearer of good news is here",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer your-token-goes-here",
        "login and password are required",
        "at 12:30:AAA it rang",
        "--- PASS: TestCheckpointID_Path/#00",
        "password = read_password2(prompt)",
        "password: str = config.passwords[2]",
        "Authorization: Basic auth is refused",
        "give it --token or --password=$PASSWORD1",
    ):
        assert mask_secrets(text) == text


def test_a_value_is_masked_and_its_name_stays():
    assert mask_secrets(f'api_key = "{RANDOM[:32]}"') == 'api_key = "[secret: generic-api-key]"'


def test_a_password_in_a_url_is_masked():
    masked_url = mask_secrets("see postgres://bob:k3Jv9xQ2mZ@db:5432/x")
    assert masked_url == "see postgres://bob:[secret: url-password]@db:5432/x"


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:password@db",
        "http://bob:$PASSWORD@host",
        "https://git@github.com/owner/repo",
        "password = hunter",
        "the token is in the vault",
        'cache_key = "sha256"',
        '"tool_use_id": "toolu_01A09q90qw90lq917835lq9"',
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "key: 550e8400-e29b-41d4-a716-446655440000",
        "public_key = " + RANDOM[:30],
        "AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text):
    assert mask_secrets(text) == text


def test_source_code_raises_no_alarm():
    sources = Path(longhold.__file__).parent.rglob("*.py")
    assert [(p.name, f) for p in sources for f in find_secrets(p.read_text())] == []


def test_places_are_in_order_and_apart():
    text = f"token={SECRETS['github-pat']}\nkey={SECRETS['gitlab-pat']}\n"
    assert find_secrets(text) == [
        FoundSecret(rule="github-pat", start=6, end=46),
        FoundSecret(rule="gitlab-pat", start=51, end=77),
    ]


def test_letters_that_grow_when_lowered_move_nothing():
    assert mask_secrets(f"İİ {SECRETS['github-pat']} İ") == "İİ [secret: github-pat] İ"


@given(st.text(alphabet=string.printable + "İé漢", max_size=200))
def test_masking_twice_is_masking_once(text):
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


KEY = "\n".join(f"{n:02}mQzV9" + "a1B2c3D4e5F6g7H8+/" * 3 for n in range(24)) + "\nQ9=="
EDGES = ("-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----")
PEM = f"{EDGES[0]}\nProc-Type: 4,ENCRYPTED\n\n{KEY}\n{EDGES[1]}"


@given(st.integers(0, len(PEM)), st.booleans())
def test_no_cut_through_a_key_shows_more_than_a_few_letters(at, is_head):
    text = f"before it\n{PEM[:at]}" if is_head else f"{PEM[at:]}\nbehind it\n"
    left = mask_secrets(text)
    assert not any(line[:16] in left or line[-16:] in left for line in KEY.split("\n")[:-1])
    assert ("before it" if is_head else "behind it") in left


def test_a_key_on_one_line_is_masked_with_it():
    line = f'"key": "{PEM[:500]}'.replace("\n", "\\n")
    assert mask_secrets(f"{line}\nnext words\n") == '"key": "[secret: private-key]\nnext words\n'


def test_the_mere_mention_of_a_key_is_none():
    text = f"a.pem:{EDGES[0]}\nb c d\n"
    assert mask_secrets(text) == text


def test_a_large_text_is_masked_in_milliseconds():
    source = Path(longhold.core.log.log.__file__).read_text()
    text = (source * 20)[:100_000]
    mask_secrets(text)
    fastest = min(_seconds(text) for _ in range(5))
    assert fastest < 0.06


def _seconds(text: str) -> float:
    began = time.thread_time()  # of this thread alone, whatever else the machine does
    mask_secrets(text)
    return time.thread_time() - began


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('{"password": "hunter2"}', "hunter2"),
        ('{"db_password":  "s3cr3t!pw"}'.replace("  ", " "), "s3cr3t!pw"),
        ('{"client_secret": "a1b2c3d4e5"}', "a1b2c3d4e5"),
        ("curl -H 'x-api-key: 9f8e7d6c5b4a39281706'", "9f8e7d6c5b4a39281706"),
        ("X-API-Key: 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
        ("sk-" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6dE9fG2hI5jK8", "gH9jK2mN5pQ8rS1tU4vW"),
        ("sshpass -p hunter2x ssh host", "hunter2x"),
        ("sshpass -p'hunter2x' ssh host", "hunter2x"),
        ("mysql -u root -phunter2x db", "hunter2x"),
        ("mysqldump -h db -p'hunter2x' db", "hunter2x"),
    ],
)
def test_passwords_of_common_forms_are_masked(text, secret):
    assert secret not in mask_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "string"}',
        "sshpass -p $PASS ssh host",
        "mysql -u root -p db",
        "mysql --port 3306",
    ],
)
def test_what_is_no_password_stays(text):
    assert mask_secrets(text) == text
