"""Answers posted elsewhere: where they go, with which token, and what they can do there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.posting import Post, PostError, fill_template, make_harmless, send, target_of
from kb.errors import InputError, SettingsError
from kb.service import Service

TOKENS = {"GITHUB_TOKEN": "gh", "GITLAB_TOKEN": "gl"}
ENTERPRISE = {
    "GITHUB_SERVER_URL": "https://git.example.org",
    "GITHUB_API_URL": "https://git.example.org/api/v3",
}
OWN_GITLAB = {"GITLAB_URL": "https://gl.example.org/"}
POST = Post(
    title='a "b"',
    text="t",
    markdown="*m* {title}",
    status="diagnosed",
    cause="rank-crash",
    probability="0.90",
)


@pytest.mark.parametrize(
    ("address", "environ", "expected"),
    [
        (
            "https://github.com/o/r/issues/12",
            {},
            ("https://api.github.com/repos/o/r/issues/12/comments", "Bearer gh", ["body"]),
        ),
        (
            "https://github.com/o/r/issues",
            {},
            ("https://api.github.com/repos/o/r/issues", "Bearer gh", ["body", "title"]),
        ),
        (
            "https://git.example.org/o/r/issues/1",
            ENTERPRISE,
            ("https://git.example.org/api/v3/repos/o/r/issues/1/comments", "Bearer gh", ["body"]),
        ),
        (
            "https://gitlab.com/g/sub/p/-/issues/3",
            {},
            ("https://gitlab.com/api/v4/projects/g%2Fsub%2Fp/issues/3/notes", "gl", ["body"]),
        ),
        (
            "https://gl.example.org/g/p/-/issues",
            OWN_GITLAB,
            (
                "https://gl.example.org/api/v4/projects/g%2Fp/issues",
                "gl",
                ["description", "title"],
            ),
        ),
    ],
)
def test_an_issue_is_posted_to_by_its_own_api(
    address: str, environ: dict[str, str], expected: tuple[str, str, list[str]]
) -> None:
    """With a number a comment, without one a new issue; each with the token of its host."""
    target = target_of(address, {**TOKENS, **environ})
    token = target.headers.get("Authorization") or target.headers["PRIVATE-TOKEN"]
    assert (target.address, token, sorted(target.template)) == expected


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example.org/o/r/issues/1",
        "https://github.com.evil.example/o/r/issues/1",
        "https://gl.example.org/g/p/-/issues/1",
        "https://evil.example/?x=https://github.com/o/r/issues/1",
    ],
)
def test_no_token_goes_to_a_host_it_is_not_of(address: str) -> None:
    """An unknown host is a webhook, which has a token of its own or none."""
    target = target_of(address, TOKENS)
    assert (target.address, dict(target.headers)) == (address, {})
    own = target_of(address, {**TOKENS, "TKB_WEBHOOK_TOKEN": "own"})
    assert own.headers == {"Authorization": "Bearer own"}


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.example.org/x",
        "ftp://hooks.example.org/x",
        "https://user:secret@hooks.example.org/x",
        "https://",
        "https://h:0/x",
        "https://[::1/x",
        "hooks.example.org/x",
    ],
)
def test_other_addresses_are_refused(address: str) -> None:
    """Only https, but for this machine; nothing of a password is shown."""
    with pytest.raises(InputError) as failure:
        target_of(address, {})
    assert "secret" not in str(failure.value)


def test_a_missing_token_is_named() -> None:
    """The variable to set."""
    with pytest.raises(SettingsError, match="GITHUB_TOKEN"):
        target_of("https://github.com/o/r/issues/1", {})
    with pytest.raises(SettingsError, match="GITLAB_TOKEN"):
        target_of("https://gitlab.com/o/r/-/issues/1", {"GITLAB_TOKEN": "a\r\nX-Evil: 1"})


def test_a_template_is_filled_in_its_strings(tmp_path: Path) -> None:
    """What is filled in stays text: it breaks out of no string and is filled in once."""
    path = tmp_path / "t.json"
    path.write_text('{"a": ["{title}: {markdown}", 1, null], "{title}": "{unknown}"}')
    target = target_of("http://127.0.0.1:9/x", {}, path)
    assert fill_template(target.template, POST) == {
        "a": ['a "b": *m* {title}', 1, None],
        "{title}": "{unknown}",
    }
    path.write_text("{")
    with pytest.raises(InputError, match="give a file with JSON"):
        target_of("http://127.0.0.1:9/x", {}, path)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("cc @team and a@b", "cc @\u200bteam and a@\u200bb"),
        ("/close", "\\/close"),
        ("  /assign @me", "  \\/assign @\u200bme"),
        ("see `pip install a@b` @x", "see `pip install a@b` @\u200bx"),
        ("```\n@a\n/close\n```\n@b", "```\n@a\n/close\n```\n@\u200bb"),
        ("````\n```\n/close\n````\n/x", "````\n```\n/close\n````\n\\/x"),
        ("/ is a root", "/ is a root"),
    ],
)
def test_nobody_is_called_and_no_bot_ordered(line: str, shown: str) -> None:
    """Names and commands of a log stay text; code is copied as it is."""
    assert make_harmless(line) == shown


def test_an_answer_is_posted_without_secrets(real: Service) -> None:
    """Title and both bodies of a real answer, whose log holds a token and a name."""
    secret = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3f"
    log = (
        f"[rank0]: torch.OutOfMemoryError: CUDA out of memory {secret} @everyone <b>x</b>\n"
        "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
    )
    answer = real.diagnose_text(log, language="en")
    post = Post.of(answer, real.knowledge.labels)
    assert (post.status, post.cause) == ("diagnosed", "rank-crash")
    whole = f"{post.title}{post.text}{post.markdown}"
    assert secret not in whole
    assert "out of memory" in post.markdown


# --- the place ----------------------------------------------------------------------------------


@contextmanager
def place(status: int, body: str = "", **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers every post so; its address and the posts."""
    posts: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name http.server looks for
            content = self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((self.path, self.headers.get("Authorization"), json.loads(content)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", posts
        server.shutdown()
        thread.join()


def test_a_webhook_gets_the_answer_as_json() -> None:
    """All fields, with the token of webhooks; the page of what was made is given back."""
    made = json.dumps({"html_url": "https://x.example/1"})
    with place(201, made) as (address, posts):
        assert send(target_of(address, {"TKB_WEBHOOK_TOKEN": "own"}), POST) == "https://x.example/1"
    ((path, token, body),) = posts
    assert (path, token) == ("/hook", "Bearer own")
    assert body == {
        "title": 'a "b"',
        "text": "t",
        "markdown": "*m* {title}",
        "status": "diagnosed",
        "cause": "rank-crash",
        "probability": "0.90",
    }


def test_redirects_are_not_followed() -> None:
    """The token would go where nobody meant it to."""
    with place(200) as (other, others), place(307, Location=other) as (address, posts):
        with pytest.raises(PostError, match="answered 307 — redirects are not followed"):
            send(target_of(address, {"TKB_WEBHOOK_TOKEN": "own"}), POST)
        assert (len(posts), others) == (1, [])


def test_a_refusal_and_a_missing_server_are_told() -> None:
    """With what to look at; the body of the answer, which may be anything, is not shown."""
    with (
        place(403, "<script>") as (address, _),
        pytest.raises(PostError, match="answered 403 — check the token and its rights") as failure,
    ):
        send(target_of(address, {}), POST)
    assert "script" not in str(failure.value)
    with pytest.raises(PostError, match="does not answer"):
        send(target_of("http://127.0.0.1:1/x", {}), POST)
