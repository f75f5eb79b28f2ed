"""Secrets go, facts stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.logs.redact import redact

A40 = "a1B2" * 10
SECRETS = {
    "hugging face": (f"login with hf_{A40[:34]} ok", f"hf_{A40[:34]}"),
    "github": (f"remote: ghp_{A40[:36]}", f"ghp_{A40[:36]}"),
    "github fine grained": (f"github_pat_{A40}", f"github_pat_{A40}"),
    "aws id": ("AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "aws secret": (f"AWS_SECRET_ACCESS_KEY={A40}", A40),
    "slack": ("token xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012-abcdefABCDEF"),
    "slack hook": ("https://hooks.slack.com/services/T0/B0/XyZ123", "T0/B0/XyZ123"),
    "openai": (f"OPENAI_API_KEY=sk-{A40}", f"sk-{A40}"),
    "wandb": (f"wandb login {A40}", A40),
    "wandb env": (f"export WANDB_API_KEY={A40}", A40),
    "jwt": (f"jwt eyJ{A40}.{A40}.{A40}", f"eyJ{A40}.{A40}.{A40}"),
    "bearer": (f"Authorization: Bearer {A40}", A40),
    "url": ("http://bob:hunter22@proxy.corp:8080/x", "bob:hunter22"),
    "git url": (f"https://oauth2:{A40}@gitlab.corp/a.git", A40),
    "password": ('password="hunter22 and more"', "hunter22 and more"),
    "password flag": ("mysql --password hunter22x -h db", "hunter22x"),
    "yaml": ("  db_password: hunter22", "hunter22"),
    "chinese": ("密码：hunter22", "hunter22"),
    "email": ("mail jane.doe+x@example.org please", "jane.doe+x@example.org"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz\n-----END RSA PRIVATE KEY-----\nafter",
        "MIIabc\nxyz",
    ),
    "cut private key": ("-----BEGIN PRIVATE KEY-----\nMIIabc", "MIIabc"),
}
FACTS = (
    "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)",
    "[PG ID 0 PG GUID 0(default_pg) Rank 11] commId 0x47dc53f08cbcda96",
    "misc/socket.cc:484 NCCL WARN wrong magic 74656d2f20544547 != 7970663b906d70b9",
    "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.3<0>",
    "[c10d] connecting to [10-1-0-200.master-0.svc.cluster.local]:23456",
    "max_tokens=4096 num_tokens: 123456 pad_token_id: 0 eos_token='</s>' tokenizer=llama",
    "Token indices sequence length is longer than the specified maximum (21169 > 4096)",
    "HTTP_PROXY=http://proxy.corp:8080 MASTER_ADDR=10.0.1.30",
    "commit b6475625fbcaa2c3c0e50eed2fa1255d7514d4a2",
    "git@github.com:NVIDIA/nccl.git",
    "keys: /default_pg/0//cuda//3 wait timeout after 300000ms",
    "KeyError: 'input_ids'",
    "KeyError: 0",
    "store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
    "password: None",
)


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_secrets_are_removed(text: str, secret: str) -> None:
    """The secret is gone, its place is marked, and it is counted."""
    clean, count = redact(text)
    assert secret not in clean
    assert "<redacted:" in clean
    assert count >= 1


@pytest.mark.parametrize("text", FACTS)
def test_facts_stay(text: str) -> None:
    """What a diagnosis reads is left to the letter."""
    assert redact(text) == (text, 0)


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_twice_is_once(text: str, secret: str) -> None:
    """Redacting again changes and counts nothing."""
    clean, _ = redact(text)
    assert redact(clean) == (clean, 0)


def test_host_of_a_url_stays() -> None:
    """Only the credentials of an address go: which host it was is a fact."""
    assert redact("http://u:pw12@10.0.0.1:80/x")[0] == "http://<redacted:credentials>@10.0.0.1:80/x"


@given(st.text(max_size=300))
def test_any_text_keeps_its_lines(text: str) -> None:
    """Any text passes; without a private key the number of lines stays the same."""
    clean, count = redact(text)
    if "PRIVATE KEY" not in text:
        assert clean.count("\n") == text.count("\n")
    if count == 0:
        assert clean == text


@pytest.mark.parametrize(
    "piece",
    ["a", "a.", "://", "://a:", "eyJ", "sk-", "password", "password=", "secret_", "@", "a@", "x-",
     "-----BEGIN PRIVATE KEY-----", "AKIA", "Bearer ", "token token ", "a_token = "],
)  # fmt: skip
def test_long_repeats_end(piece: str) -> None:
    """A megabyte of any trigger ends: no expression goes back over what it read."""
    clean, _ = redact(piece * (1_000_000 // len(piece)))
    assert len(clean) <= 20_000_000
