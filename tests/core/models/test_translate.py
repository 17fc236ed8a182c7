"""The meaning of providers' failures, tested with the SDKs' own exceptions."""

import json

import anthropic
import httpx2
import openai
import pytest

from longhold.core.messages import Usage
from longhold.core.models.protocol import Reply
from longhold.core.models.translate import (
    ProviderFault,
    explain,
    refusal,
    retry_after_seconds,
    translate,
    translate_errors,
)
from longhold.errors import (
    AuthenticationFailed,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)

ASKED = httpx2.Request("POST", "https://example.invalid/v1")


def status_error(sdk, status, body, **headers):
    """Make the exception an SDK makes of a response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx2.Response(status, json=body, headers=named, request=ASKED)
    if sdk is openai:
        body = body.get("error", body)
    return sdk.APIStatusError("failed", response=response, body=body)


def error_body(message, kind="invalid_request_error", **more):
    return {"type": "error", "error": {"type": kind, "message": message, **more}}


@pytest.mark.parametrize(
    ("message", "needed", "allowed"),
    [
        ("prompt is too long: 200251 tokens > 200000 maximum", 200251, 200000),
        ("prompt is too long", None, None),
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, "
            "decrease input length or `max_tokens` and try again",
            207951,
            200000,
        ),
        ("Input is too long for requested model.", None, None),
        ("Your input exceeds the context window of this model. Please adjust.", None, None),
        (
            "This model's maximum context length is 128000 tokens. However, your messages "
            "resulted in 130001 tokens. Please reduce the length of the messages.",
            130001,
            128000,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 "
            "tokens (4000 in the messages, 1000 in the completion).",
            5000,
            4096,
        ),
        (
            "request (4031 tokens) exceeds the available context size (2048 tokens), try "
            "increasing it",
            4031,
            2048,
        ),
        ("the request exceeds the available context size", None, None),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096",
            5000,
            4096,
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1200000,
            1048576,
        ),
        ("prompt too long; exceeded max context length by 12 tokens", None, None),
    ],
)
@pytest.mark.parametrize("sdk", [anthropic, openai])
def test_too_long_is_known_in_every_wording(sdk, message, needed, allowed):
    ours = translate(status_error(sdk, 400, error_body(message)))
    assert isinstance(ours, PromptTooLong)
    assert (ours.needed_tokens, ours.allowed_tokens) == (needed, allowed)


def test_too_long_is_said_once():
    ours = translate(status_error(anthropic, 400, error_body("prompt is too long: 9 tokens > 8")))
    assert str(ours).lower().count("too long") == 1


def test_too_long_may_be_said_in_fields():
    body = {
        "error": {
            "code": 400,
            "type": "exceed_context_size_error",
            "message": "no",
            "n_prompt_tokens": 9,
            "n_ctx": 8,
        }
    }
    ours = translate(status_error(anthropic, 400, body))
    assert (ours.needed_tokens, ours.allowed_tokens) == (9, 8)


def test_a_mention_of_length_elsewhere_is_not_too_long():
    body = error_body("prompt is too long: wait a little", kind="rate_limit_error")
    assert isinstance(translate(status_error(anthropic, 429, body)), ModelUnavailable)


@pytest.mark.parametrize("sdk", [anthropic, openai])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRejected),
        (401, AuthenticationFailed),
        (402, AuthenticationFailed),
        (403, AuthenticationFailed),
        (404, RequestRejected),
        (408, ModelUnavailable),
        (409, ModelUnavailable),
        (413, PromptTooLong),
        (422, RequestRejected),
        (429, ModelUnavailable),
        (500, ModelUnavailable),
        (502, ModelUnavailable),
        (503, ModelUnavailable),
        (504, ModelUnavailable),
        (529, ModelUnavailable),
    ],
)
def test_every_status_has_its_meaning(sdk, status, kind):
    ours = translate(status_error(sdk, status, error_body("no", kind="x")))
    assert type(ours) is kind
    assert ours.status == status


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"code": "insufficient_quota", "message": "pay"}, AuthenticationFailed),
        (
            429,
            {"details": {"error_code": "enforced_spend_limit_reached"}, "message": "x"},
            AuthenticationFailed,
        ),
        (
            400,
            {"details": {"error_code": "compaction_unavailable"}, "message": "x"},
            ModelUnavailable,
        ),
        (400, {"code": "content_policy_violation", "message": "x"}, ModelRefused),
        (400, {"message": "Output blocked by content filtering policy"}, ModelRefused),
    ],
)
def test_a_code_says_more_than_the_status(status, error, kind):
    assert type(translate(status_error(anthropic, status, {"error": error}))) is kind


@pytest.mark.parametrize("sdk", [anthropic, openai])
def test_a_connection_error_depends_on_when_it_came(sdk):
    error = sdk.APIConnectionError(request=ASKED)
    assert type(translate(error)) is ModelUnavailable
    assert type(translate(error, has_begun=True)) is StreamBroken


@pytest.mark.parametrize(
    "error",
    [
        anthropic.APITimeoutError(request=ASKED),
        openai.APITimeoutError(request=ASKED),
        httpx2.ReadTimeout("slow", request=ASKED),
    ],
)
def test_a_timeout_is_silence(error):
    assert "went silent" in str(translate(error))


def test_the_http_clients_own_errors_are_known():
    error = httpx2.RemoteProtocolError("peer closed connection", request=ASKED)
    assert type(translate(error, has_begun=True)) is StreamBroken


def test_an_error_inside_a_stream_has_no_status_of_its_own():
    error = status_error(anthropic, 200, error_body("busy", kind="overloaded_error"))
    assert type(translate(error)) is ModelUnavailable
    assert translate(error).status == 529
    assert type(translate(error, has_begun=True)) is StreamBroken


def test_missing_credentials_are_authentication():
    assert type(translate(anthropic.CredentialsError("no file"))) is AuthenticationFailed
    assert type(translate(openai.OpenAIError("no key"))) is AuthenticationFailed


def test_a_bug_is_not_a_providers_failure():
    assert translate(KeyError("x")) is None
    with pytest.raises(KeyError), translate_errors():
        raise KeyError("x")


def test_an_error_of_ours_stays_itself():
    error = ModelRefused("no")
    assert translate(error) is error


def test_the_original_is_kept_as_the_cause():
    original = anthropic.APIConnectionError(request=ASKED)
    with pytest.raises(ModelUnavailable) as caught, translate_errors():
        raise original
    assert caught.value.__cause__ is original


def test_garbled_json_is_a_broken_stream():
    with pytest.raises(StreamBroken), translate_errors():
        json.loads("{nope")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, 0.0),
    ],
)
def test_retry_after_is_read_in_every_form(headers, seconds):
    assert retry_after_seconds(headers, now=100.0) == seconds


def test_retry_after_reaches_the_error():
    ours = translate(
        status_error(anthropic, 429, error_body("slow"), retry_after="12", request_id="r")
    )
    assert ours.retry_after_seconds == 12.0
    assert ours.request_id == "r"


def test_trouble_inside_an_answer_keeps_its_cause():
    broken = explain(ProviderFault(status=529, message="busy"), has_begun=True)
    assert type(broken) is StreamBroken
    assert type(broken.__cause__) is ModelUnavailable


@pytest.mark.parametrize(("reason", "kind"), [("refusal", ModelRefused), ("end_turn", type(None))])
def test_a_refusal_is_an_answer_that_can_be_raised(reason, kind):
    extra = {"stop_details": {"category": "cyber"}}
    reply = Reply(
        response_id="m", model="x", content=(), stop_reason=reason, usage=Usage(), extra=extra
    )
    assert type(refusal(reply)) is kind
