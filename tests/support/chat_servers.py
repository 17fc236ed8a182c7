"""Chat API servers as they exist: each lists its models in its own shape.

The shapes are those of the servers' public documentation. Each answers chat requests, and
`/v1/responses` if it has it, in the same way: it calls `add` once and then reports the result.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WINDOW = 24_576
MODEL = "qwen3-8b"


def _listed(**more):
    return {"object": "list", "data": [{"id": MODEL, "object": "model", **more}]}


SERVERS = {
    "vllm": {"/v1/models": _listed(owned_by="vllm", root=MODEL, max_model_len=WINDOW)},
    "llama.cpp": {
        "/v1/models": _listed(owned_by="llamacpp", meta={"n_vocab": 1, "n_ctx_train": 131_072}),
        "/props": {"default_generation_settings": {"n_ctx": WINDOW}, "total_slots": 1},
    },
    "llama.cpp without props": {
        "/v1/models": _listed(owned_by="llamacpp", meta={"n_vocab": 1, "n_ctx_train": WINDOW}),
    },
    "ollama": {
        "/v1/models": _listed(owned_by="library", created=1),
        "/api/ps": {"models": []},
        "/api/show": {
            "parameters": f'stop "<|im_end|>"\nnum_ctx    {WINDOW}',
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
        },
    },
    "ollama, loaded": {
        "/v1/models": _listed(owned_by="library", created=1),
        "/api/ps": {"models": [{"name": MODEL, "model": MODEL, "context_length": WINDOW}]},
        "/api/show": {"model_info": {"qwen3.context_length": 40_960}},
    },
    "lm studio": {
        "/v1/models": _listed(owned_by="organization_owner"),
        "/api/v0/models": _listed(
            type="llm", state="loaded", max_context_length=131_072, loaded_context_length=WINDOW
        ),
    },
    "openrouter": {
        "/v1/models": {
            "data": [
                {"id": "other/model", "context_length": 1},
                {
                    "id": MODEL,
                    "context_length": WINDOW,
                    "top_provider": {"context_length": WINDOW, "max_completion_tokens": 4_096},
                },
            ]
        }
    },
}
SILENT = {"/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]}}


def _chat(body):
    last = body["messages"][-1]
    usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
    whole = {"id": f"c{len(body['messages'])}", "object": "chat.completion", "created": 1}
    if last["role"] == "tool":
        message = {"role": "assistant", "content": f"It is {last['content']}."}
        reason = "stop"
    else:
        function = {"name": "add", "arguments": '{"a": 2, "b": 3}'}
        calls = [{"id": "call_0", "type": "function", "function": function}]
        message, reason = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return whole | {"model": body["model"], "choices": [choice], "usage": usage}


def _responses(body):
    last = body["input"][-1]
    if last.get("type") == "function_call_output":
        text = {"type": "output_text", "text": f"It is {last['output']}.", "annotations": []}
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
        output = [item | {"content": [text]}]
    else:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add"}
        output = [thought, call | {"arguments": '{"a": 2, "b": 3}', "status": "completed"}]
    usage = {"input_tokens": 50, "output_tokens": 9, "total_tokens": 59}
    usage |= {"input_tokens_details": {"cached_tokens": 40}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
    whole = {"id": f"resp_{len(body['input'])}", "object": "response", "created_at": 1}
    return whole | {"model": body["model"], "output": output, "usage": usage} | more


@contextmanager
def serving(pages):
    """Serve some pages and the endpoints; yield the address and the requests that came."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self._answer(pages.get(self.path))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came.append((self.path, body))
            if self.path == "/v1/chat/completions":
                self._answer(_chat(body))
            elif self.path == "/v1/responses":
                self._answer(_responses(body))
            else:
                self._answer(pages.get(self.path))

        def _answer(self, page):
            data = json.dumps({"error": {"message": "no"}} if page is None else page).encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
