"""Secrets go, facts stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.redact import redact

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
    "vllm start-up": (
        "non-default args: {'api_key': ['token-abc123456'], 'tensor_parallel_size': 8}",
        "token-abc123456",
    ),
    "several keys": ("Namespace(api_key=['abc-first1', 'def-second2'], lr=1)", "def-second2"),
    "argument list": ("cmd: ['--api-key', 'abc-def-ghi-1']", "abc-def-ghi-1"),
    "flag with dashes": ("vllm serve m --api-key token-abc123 -tp 8", "token-abc123"),
    "password flag with dashes": ("x --password my-secret-pass", "my-secret-pass"),
    "token flag": ("huggingface-cli login --token abcdef123456", "abcdef123456"),
    "full-width colon": ("password：hunter2", "hunter2"),
    "full-width token": ("token：abcdefgh12345678", "abcdefgh12345678"),
    "chinese token": ("令牌是abcdefgh12345678", "abcdefgh12345678"),
    "json in json": (r"{\"password\": \"hunter22\", \"lr\": 1}", "hunter22"),
    "json in json in json": (r"{\\\"api_key\\\": \\\"hunter22\\\"}", "hunter22"),
    "percent-encoded": ("GET /x?password%3Dhunter22", "hunter22"),
    "long session token": (f"AWS_SESSION_TOKEN={A40 * 20}", A40),
    "long quoted": (f'"SessionToken": "{A40 * 20}"', A40),
    "bare token": (f"TOKEN={A40}", A40),
    "letters alone": ("TOKEN=abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnop"),
    "query": ("GET /lab?token=0123456789abcdef0123&x=1 HTTP/1.1", "0123456789abcdef0123"),
    "yaml token": (f"    token: {A40}", A40),
    "header of a token": (f"X-Vault-Token: {A40}", A40),
    "kubeadm": ("kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef", "0123456789abcdef"),
    "authorization token": (f"Authorization: Token {A40}", A40),
    "authorization alone": (f'{{"Authorization": "{A40}"}}', A40),
    "short bearer": ("Authorization: Bearer s3cr3t-tok", "s3cr3t-tok"),
    "short bearer alone": ("sent Bearer abc123def", "abc123def"),
    "short basic": ("Authorization: Basic dXNlcjpwdw==", "dXNlcjpwdw"),
    "wandb call": (f'wandb.login(key="{"0a1b" * 10}")', "0a1b0a1b"),
    "wandb prompt": (f"wandb: Paste an API key and hit enter: {'0a1b' * 10}", "0a1b0a1b"),
    "wandb key": (f"{{'wandb_key': '{'0a1b' * 10}'}}", "0a1b0a1b"),
    "wandb host": (f"wandb login --host=https://w.corp {'0a1b' * 10}", "0a1b0a1b"),
    "wandb relogin": (f"wandb login --relogin --host=https://w.corp local-{A40}", A40),
    "azure key": (f"AccountName=x;AccountKey={A40}==;EndpointSuffix=y", A40),
    "azure signature": (f"https://a.net/c?se=2026&sp=r&sig={A40}%3D", A40),
    "signed address": (f"https://b.net/k?X-Amz-Date=1&X-Amz-Signature={A40}", A40),
    "stripe": (f"sk_live_{A40}", A40),
    "ngc": (f"docker pull with nvapi-{A40}", A40),
    "aliyun": ("id LTAI5tAbCdEfGhIjKlMnOpQr", "5tAbCdEfGhIjKlMnOpQr"),
    "tencent": (f"id AKID{A40[:32]}", A40[:32]),
    "replicate": (f"r8_{A40[:37]}", A40[:37]),
    "own key": (f"curl with tkb_{A40[:32]}", A40[:32]),
    "discord hook": (f"https://discord.com/api/webhooks/123/{A40}", A40),
    "feishu hook": (
        "https://open.feishu.cn/open-apis/bot/v2/hook/0123-89ab-cdef",
        "0123-89ab-cdef",
    ),
    "wecom hook": (
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=0123-89ab-cdef",
        "0123-89ab-cdef",
    ),
    "cookie": ("> Cookie: session=abcdef012345; csrftoken=uvwxyz", "uvwxyz"),
    "set-cookie": ("{'Set-Cookie': 'sid=38afes7a8; HttpOnly'}", "38afes7a8"),
    "pgp": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF\nxyz\n-----END PGP PRIVATE KEY BLOCK-----",
        "lQOYBF",
    ),
    "url with @": ("https://user:p@ssw0rd@host/x", "ssw0rd"),
    "curl": ("curl -s -u bob:hunter22 https://h", "hunter22"),
    "docker": ("docker login -u bob -p hunter22 reg.io", "hunter22"),
    "email": ("mail jane.doe+x@example.org please", "jane.doe+x@example.org"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz\n-----END RSA PRIVATE KEY-----\nafter",
        "MIIabc\nxyz",
    ),
    "cut private key": ("-----BEGIN PRIVATE KEY-----\nMIIabc", "MIIabc"),
    "bot behind a backslash": (f"api_key=sk-proj-{A40}\\\n{A40[3:30]}_x", A40[3:30]),
    "quoted behind a backslash": (
        f"KEY_TOKEN='{A40[:14]}'\\\n'{A40[5:30]}' python t.py",
        A40[5:30],
    ),
    "cut for width": (f"export API_KEY={A40[:20]}\n{A40[1:33]}\nnext", A40[1:33]),
    "cut for width twice": (f"api_key={A40}\n{A40}\n{A40[1:]}7\nnext", A40[1:]),
    "on the next line": ('db_password:\n  "Wq5mZx9LrTk2"', "Wq5mZx9LrTk2"),
    "folded yaml": ("db_password: >-\n  Wq5mZx9LrTk2", "Wq5mZx9LrTk2"),
    "full-width value": ("密码：Ｈ３ｌｌｏＷｏｒｌｄ９", "Ｈ３ｌｌｏ"),
    "no width": ("pass\u200bword: hunter\u200b22", "22"),
    "putty": (
        f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n{A40}\n{A40}AA\nPrivate-MAC: x",
        A40,
    ),
    "browser's cookies": (
        "hub.lab\tFALSE\t/\tTRUE\t1790000000\tsession\tKw4Zp9Xv2Lq",
        "Kw4Zp9Xv2Lq",
    ),
    "phone alone": ("night shift 139-1234-5678", "139-1234-5678"),
    "mark before a tag": (f"token=hf_{A40} x <a> token=hf_{A40}[1,3]<stderr>:x", A40),
    "json phone": ('{"to": "+14155550132"}', "4155550132"),
    "bank account": ("报销账户 6222600260001072444", "6222600260001072444"),
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
    "token: 1234 tokens/s, token=151645, time_per_token=0.0123456 eos_token: 151645",
    "max_tokens=4096 num_tokens: 8 pad_token=</s> eos_token_id: 2 tokenizer: LlamaTokenizer",
    "token: LlamaTokenizerFast token_type: bearer Unexpected token: identifier",
    "tokenizer.pad_token = tokenizer.eos_token; added {'pad_token': '[PAD]'}",
    "next_token = torch.argmax(logits, dim=-1); token = self.tokens[12345678]",
    "token: str, hf_token: Optional[str] = None, api_key=None, api_key=[]",
    "key: value key=5 KeyError: 'token' sort_key=abcdef0123456789",
    "PWD=/home/user/run7 OLDPWD=/home docker run -v $PWD:/mnt",
    "parser flags: ['--token', '--quiet'] usage: --api-key API",
    "use bearer authentication. basic communication/initialization is done",
    "Authorization: Bearer $TOKEN, Authorization: Bearer <key>, authorization: failed",
    "cookie: 0x7f3a magic cookie, cookie=12",
    "pip install git+https://github.com/a/b.git@v1.0 https://h:8080/x?mail=a@b",
    "wandb: commit 0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b",
    "令牌：4096，令牌数为 151645",
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


def test_what_stands_around_a_secret_stays() -> None:
    """The rest of vLLM's start-up line is what a diagnosis reads."""
    line = "args: {'api_key': ['token-abc123456'], 'tensor_parallel_size': 8}"
    assert redact(line)[0] == "args: {'api_key': [<redacted:secret>], 'tensor_parallel_size': 8}"
    line = "vllm serve m --api-key token-abc123 -tp 8"
    assert redact(line)[0] == "vllm serve m --api-key <redacted:secret> -tp 8"
    line = r"{\"password\": \"hunter22\", \"world_size\": 8}"
    assert redact(line)[0] == r"{\"password\": \"<redacted:secret>\", \"world_size\": 8}"


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
     "-----BEGIN PRIVATE KEY-----", "AKIA", "Bearer ", "token token ", "a_token = ", "token: ",
     "--token ", "--api-key', '", "api_key=['", "api key ", "wandb login --a ", "curl -u ",
     "cookie: a=b;", "authorization: ", "://a:b@", 'password\\":\\"', "_token=a1", "?sig=a",
     "name: DB_PASSWORD\n", "name=a_secret value", "<password>", "&lt;a_secret&gt;a", "pass: a1",
     "the password is a1", "ak=a1", "ak/sk: a1/", "auth: a1", "mysql -a ", "openssl pass:",
     "echo a", "phone ", "身份证1", "&key=a1", "%3A%2F%2Fa%3A", "glrt-a", "sk-a1-", "cookies={'",
     "sessionid=a1", "*:*:a:b:A1",
     'variable "a_token" {\n', "| token | a1", "密码改成 a1", "the secret is A1", " is the token",
     "a1! 是密码", "+1 ", "phone +1", "card 4", "idcard 1", "a_Ab1", "base64 -d <<< a", "a:b@",
     "kind: Secret\ndata:\n a: b\n", "<redacted:secret>\n", "ｐ", "\u200b", "iban AA11", "a\t/",
     "\x1b[31m", "password=\x1b[3"],
)  # fmt: skip
def test_long_repeats_end(piece: str) -> None:
    """Ten times of any trigger takes some ten times as long: no expression goes back and back."""

    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        started = time.process_time()
        clean, _ = redact(text)
        assert len(clean) <= 20 * length
        return time.process_time() - started

    short = min(seconds(20_000) for _ in range(2))
    assert seconds(200_000) <= max(0.05, 25 * short)
