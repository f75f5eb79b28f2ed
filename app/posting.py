"""An answer posted where a team works: a comment or an issue of GitHub and GitLab, or a webhook.

What is posted is Markdown with everything of the log escaped: it names nobody (``@``), runs no
command of a bot (``/close``), and holds no secret the redaction knows. Tokens come from the
environment and go to the host they are of alone; redirects are not followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from app.client_http import shown
from app.render import head
from app.render.escape import plain, printable
from app.render.forms import render_diagnosis
from app.server.address import is_loopback
from kb.errors import InputError, KBError, MissingExtraError, SettingsError
from kb.knowledge.labels import Words
from kb.text.redact import redact
from kb.types.answer import Diagnosis
from kb.types.knowledge import Bilingual

TIMEOUT_S = 30.0
MAX_BODY = 60_000  # characters; GitHub takes 65,536
MAX_TITLE = 200
TEXT_CELLS = 100
WEBHOOK_TOKEN = "TKB_WEBHOOK_TOKEN"  # noqa: S105 - the name of a variable
_GITHUB = re.compile(r"/([\w.-]+)/([\w.-]+)/issues(?:/([0-9]{1,12}))?/?")
_GITLAB = re.compile(r"/((?:[\w.-]+/)+[\w.-]+)/-/(?:issues|work_items)(?:/([0-9]{1,12}))?/?")
_FENCE = re.compile(r"^\s{0,12}(`{3,})")
_CODE = re.compile(r"(`+[^`]*`+)")
_NAMES = re.compile(r"@(?=\w)")
_COMMAND = re.compile(r"^(\s*)/(?=\w)")
_SLOT = re.compile(r"\{(title|text|markdown|status|cause|probability)\}")


class PostError(KBError):
    """The place did not take the post."""

    code = "post"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An answer as it is posted."""

    title: str
    text: str
    markdown: str
    status: str
    cause: str
    probability: str

    @classmethod
    def of(cls, answer: Diagnosis, labels: Mapping[str, Bilingual]) -> Post:
        """The post of an answer."""
        words = Words(labels, answer.language)
        lead = answer.causes[0] if answer.causes else None
        markdown = render_diagnosis(answer, labels, "markdown", width=TEXT_CELLS)
        text = render_diagnosis(answer, labels, "short", width=TEXT_CELLS)
        title = redact(plain(head.title(printable(answer), words)))[0]
        return cls(
            title=title[:MAX_TITLE],
            text=redact(text)[0],
            markdown=make_harmless(redact(markdown)[0][:MAX_BODY]),
            status=answer.status,
            cause=lead.id if lead else "",
            probability=f"{lead.probability:.2f}" if lead else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PostTarget:
    """Where a post goes: an address, headers with the token, and the shape of its body."""

    address: str
    headers: Mapping[str, str]
    template: Any


def make_harmless(markdown: str) -> str:
    """Markdown that mentions nobody and gives no bot an order; code stays as it is."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence or mark:
            lines.append(line)
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence):
                fence = ""
            continue
        parts = _CODE.split(_COMMAND.sub(r"\1\\/", line))
        lines.append("".join(p if p.startswith("`") else _NAMES.sub("@\u200b", p) for p in parts))
    return "\n".join(lines)


def target_of(address: str, environ: Mapping[str, str], template: Path | None = None) -> PostTarget:
    """Where `address` leads: an issue or the issues of a project, else a webhook.

    Raises:
        InputError: it is no address to post to, or the template no JSON.
        SettingsError: the token it needs is not set.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port == 0 or parts.username is not None or parts.password is not None:
        raise InputError(
            f"{shown(address)!r} is no address to post to",
            todo="give https://...",
            reason="post_address",
            values={"address": shown(address)},
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise InputError(
            f"{shown(address)!r} is not https",
            todo="give https://...",
            reason="post_address",
            values={"address": shown(address)},
        )
    if template is None:
        for place in (_github, _gitlab):
            if target := place(f"{parts.scheme}://{parts.netloc}", parts.path, environ):
                return target
    token = environ.get(WEBHOOK_TOKEN, "")
    headers = {"Authorization": f"Bearer {_token(token, WEBHOOK_TOKEN)}"} if token else {}
    return PostTarget(address=address, headers=headers, template=_template(template))


def _github(server: str, path: str, environ: Mapping[str, str]) -> PostTarget | None:
    """An issue, or the issues of a repository, of github.com or of the server a workflow names."""
    own = environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    match = _GITHUB.fullmatch(path)
    if match is None or server not in ("https://github.com", own):
        return None
    api = "https://api.github.com"
    if server == own:
        api = environ.get("GITHUB_API_URL", "").rstrip("/") or api
    token = _token(environ.get("GITHUB_TOKEN", ""), "GITHUB_TOKEN")
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    issues = f"{api}/repos/{match[1]}/{match[2]}/issues"
    if match[3]:
        address, template = f"{issues}/{match[3]}/comments", {"body": "{markdown}"}
    else:
        address, template = issues, {"title": "{title}", "body": "{markdown}"}
    return PostTarget(address=address, headers=headers, template=template)


def _gitlab(server: str, path: str, environ: Mapping[str, str]) -> PostTarget | None:
    """An issue, or the issues of a project; the token goes to gitlab.com or GITLAB_URL alone."""
    match = _GITLAB.fullmatch(path)
    own = (environ.get("GITLAB_URL") or environ.get("CI_SERVER_URL", "")).rstrip("/")
    if match is None or server not in ("https://gitlab.com", own):
        return None
    headers = {"PRIVATE-TOKEN": _token(environ.get("GITLAB_TOKEN", ""), "GITLAB_TOKEN")}
    issues = f"{server}/api/v4/projects/{quote(match[1], safe='')}/issues"
    if match[2]:
        address, template = f"{issues}/{match[2]}/notes", {"body": "{markdown}"}
    else:
        address, template = issues, {"title": "{title}", "description": "{markdown}"}
    return PostTarget(address=address, headers=headers, template=template)


def _token(token: str, name: str) -> str:
    if not token or not (token.isascii() and token.isprintable()):
        raise SettingsError(f"{name} holds no token", todo=f"set {name} in the environment")
    return token


def _template(path: Path | None) -> Any:  # noqa: ANN401 - any JSON
    if path is None:
        names = ("title", "text", "markdown", "status", "cause", "probability")
        return {name: f"{{{name}}}" for name in names}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: {error}",
            todo="give a file with JSON",
            reason="post_template",
            values={"name": path.name, "why": str(error)},
        ) from error


def fill_template(template: Any, post: Post) -> Any:  # noqa: ANN401 - any JSON
    """A template with ``{title}``, ``{text}``, ``{markdown}``, ... in its strings filled in."""
    if isinstance(template, str):
        return _SLOT.sub(lambda slot: str(getattr(post, slot[1])), template)
    if isinstance(template, list):
        return [fill_template(item, post) for item in template]
    if isinstance(template, dict):
        return {name: fill_template(item, post) for name, item in template.items()}
    return template


def send(target: PostTarget, post: Post) -> str:
    """Post it, and give the address of the post where the place tells one.

    Raises:
        MissingExtraError: httpx is not installed.
        PostError: the place does not answer, or does not take it.
    """
    try:
        import httpx
    except ImportError as error:
        raise MissingExtraError(
            "posting needs httpx, which is not installed", todo="pip install 'timeout-kb[client]'"
        ) from error
    local = is_loopback(urlsplit(target.address).hostname or "")
    try:
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=not local) as http:
            answer = http.post(
                target.address,
                headers=dict(target.headers),
                json=fill_template(target.template, post),
            )
    except httpx.HTTPError as error:
        raise PostError(
            f"{shown(target.address)} does not answer: {error or type(error).__name__}",
            todo="check the address",
        ) from error
    if not answer.is_success:
        raise PostError(
            f"{shown(target.address)} answered {answer.status_code}",
            todo="redirects are not followed: give the address it leads to"
            if answer.is_redirect
            else "check the token and its rights",
        )
    return _link_of(answer.content)


def _link_of(content: bytes) -> str:
    """The page of what was made, as GitHub and GitLab tell it."""
    try:
        made = json.loads(content)
    except ValueError:
        return ""
    link = (made.get("html_url") or made.get("web_url")) if isinstance(made, dict) else ""
    return link if isinstance(link, str) else ""
