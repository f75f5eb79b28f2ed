"""Generated secrets and harmless look-alikes, in the surroundings in which people paste them.

A template holds values as `⟪prefix|alphabet|length⟫`, drawn for each sample: no token stands
in the repository. What a value of a harmless template says must come through unchanged.
"""

import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "dig": string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "an": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
    "pw": string.ascii_letters + string.digits + "!#%^*_-",
}
_VALUE = re.compile(r"⟪([^|⟫]*)\|(\w+)\|(\d+)⟫")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SHORTEST_PIECE = 6  # characters of a secret that may not survive in one piece

# Written before the expressions were read; none of these shapes was named to the writer: 350 of
# 458 went (.764).
FIRST_SIGHT: Mapping[str, Sequence[str]] = {
    "aws-access-key-id": (
        "found credentials ⟪AKIA|up|16⟫ in shared file",
        "aws_access_key_id = ⟪ASIA|up|16⟫",
    ),
    "aws-secret": ("aws_secret_access_key = ⟪|b64|40⟫", "AWS_SECRET_ACCESS_KEY=⟪|b64|40⟫"),
    "aws-session-token": (
        "AWS_SESSION_TOKEN=⟪FwoGZXIvYXdzE|b64|180⟫",
        'aws_session_token="⟪IQoJb3JpZ2lu|b64|160⟫=="',
    ),
    "aws-presigned": (
        "GET https://b.s3.amazonaws.com/ckpt?X-Amz-Expires=3600&X-Amz-Signature=⟪|hex|64⟫ 403",
    ),
    "gcp-api-key": (
        "using key ⟪AIza|url|35⟫",
        "https://maps.googleapis.com/v1/x?alt=json&key=⟪AIza|url|35⟫",
    ),
    "gcp-service-account": (
        (
            '{"type": "service_account", "private_key": '
            '"-----BEGIN PRIVATE KEY-----\\n⟪MIIEvQ|b64|64⟫\\n-----END PRIVATE KEY-----\\n"}'
        ),
    ),
    "gcp-oauth-token": ("access token ⟪ya29.a0|url|120⟫ expired",),
    "gcp-client-secret": ('"client_secret": "⟪GOCSPX-|url|28⟫"',),
    "azure-account-key": (
        "DefaultEndpointsProtocol=https;AccountName=ckpts;AccountKey=⟪|b64|86⟫==;EndpointSuffix=core.windows.net",
    ),
    "azure-sas": ("https://ckpts.blob.core.windows.net/c/x?sv=2022-11-02&sp=rl&sig=⟪|an|42⟫%3D",),
    "azure-client-secret": ("AZURE_CLIENT_SECRET=⟪kP8Q~|url|35⟫",),
    "aliyun-id": ("accessKeyId: ⟪LTAI5t|an|18⟫", "oss2 auth with ⟪LTAI|an|20⟫ failed"),
    "aliyun-secret": (
        "accessKeySecret: ⟪|an|30⟫",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET=⟪|an|30⟫",
        "OSS_ACCESS_KEY_SECRET='⟪|an|30⟫'",
    ),
    "tencent-id": ("TENCENTCLOUD_SECRET_ID=⟪AKID|an|32⟫", "cos client of ⟪AKID|an|32⟫"),
    "tencent-secret": ("TENCENTCLOUD_SECRET_KEY=⟪|an|32⟫", "secret_key = ⟪|an|32⟫"),
    "huawei-secret": ("HUAWEICLOUD_SDK_SK=⟪|an|40⟫", "obs_secret_access_key: ⟪|an|40⟫"),
    "volcengine-id": ("VOLC_ACCESSKEY=⟪AKLT|an|44⟫", "tos client ⟪AKLT|an|44⟫"),
    "volcengine-secret": ("VOLC_SECRETKEY=⟪|b64|58⟫==",),
    "minio": ("MINIO_ROOT_PASSWORD=⟪|pw|14⟫",),
    "hf-token": (
        "401 for token ⟪hf_|an|34⟫",
        "HF_TOKEN=⟪hf_|an|34⟫",
        "HUGGING_FACE_HUB_TOKEN=⟪hf_|an|34⟫",
    ),
    "wandb-key": ("WANDB_API_KEY=⟪|hex|40⟫", 'wandb.login(key="⟪|hex|40⟫")'),
    "wandb-login": ("$ wandb login ⟪|hex|40⟫", "wandb login --relogin ⟪|hex|40⟫"),
    "openai": ("OPENAI_API_KEY=⟪sk-proj-|url|80⟫", "Incorrect API key provided: ⟪sk-|an|48⟫"),
    "anthropic": ("key ⟪sk-ant-api03-|url|93⟫ rejected",),
    "deepseek": ("DEEPSEEK_API_KEY=⟪sk-|hex|32⟫", "client with ⟪sk-|hex|32⟫"),
    "dashscope": ("dashscope.api_key = '⟪sk-|hex|32⟫'",),
    "replicate": ("REPLICATE ⟪r8_|an|37⟫",),
    "comet": ("COMET_API_KEY=⟪|an|25⟫", "[comet]\napi_key=⟪|an|25⟫"),
    "neptune": ("NEPTUNE_API_TOKEN=⟪eyJhcGlfYWRkcmVzcyI6|an|120⟫==",),
    "modelscope": ("MODELSCOPE_API_TOKEN=⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",),
    "nvidia": ("NGC_API_KEY=⟪nvapi-|url|64⟫", "nim: ⟪nvapi-|url|64⟫ invalid"),
    "groq": ("groq key ⟪gsk_|an|52⟫",),
    "swanlab": ("swanlab login -k ⟪|an|21⟫", "SWANLAB_API_KEY=⟪|an|21⟫"),
    "github": (
        "remote: ⟪ghp_|an|36⟫ denied",
        "GITHUB_TOKEN=⟪ghs_|an|36⟫",
        "git clone https://⟪gho_|an|36⟫@github.com/o/r",
    ),
    "github-pat": ("⟪github_pat_11|an|20⟫_⟪|an|59⟫",),
    "gitlab": ("PRIVATE-TOKEN: ⟪glpat-|url|20⟫", "clone with ⟪glpat-|url|20⟫"),
    "gitlab-ci": (
        "https://gitlab-ci-token:⟪|url|20⟫@gitlab.corp.cn/o/r.git",
        "CI_JOB_TOKEN=⟪|url|20⟫",
    ),
    "url-password": (
        "https://deploy:⟪|an|16⟫@repo.corp.cn/simple",
        "ftp://bob:⟪|an|10⟫@10.0.0.3/x",
    ),
    "slack": (
        "SLACK_BOT_TOKEN=⟪xoxb-|dig|12⟫-⟪|dig|12⟫-⟪|an|24⟫",
        "bot ⟪xapp-1-A0|up|9⟫-⟪|dig|12⟫-⟪|hex|64⟫",
    ),
    "slack-webhook": ("curl https://hooks.slack.com/services/⟪T0|up|8⟫/⟪B0|up|8⟫/⟪|an|24⟫",),
    "discord-webhook": ("https://discord.com/api/webhooks/⟪11|dig|16⟫/⟪|url|68⟫",),
    "feishu-webhook": (
        "https://open.feishu.cn/open-apis/bot/v2/hook/⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",
    ),
    "dingtalk-webhook": ("https://oapi.dingtalk.com/robot/send?access_token=⟪|hex|64⟫",),
    "wecom-webhook": (
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",
    ),
    "telegram": (
        "https://api.telegram.org/bot⟪6|dig|9⟫:⟪AA|url|33⟫/sendMessage",
        "TELEGRAM_BOT_TOKEN=⟪6|dig|9⟫:⟪AA|url|33⟫",
    ),
    "jwt": ("got ⟪eyJhbGciOiJIUzI1NiJ9.eyJz|url|40⟫.⟪|url|43⟫ from idp",),
    "bearer": ("Authorization: Bearer ⟪|url|40⟫", '-H "authorization: bearer ⟪|an|32⟫"'),
    "basic": ("Authorization: Basic ⟪|b64|30⟫==", "'Authorization': 'Basic ⟪|b64|32⟫'"),
    "curl-user": (
        "curl -u admin:⟪|pw|12⟫ https://repo.corp.cn/x",
        "curl --user bob:⟪|an|12⟫ http://a/b",
    ),
    "api-key-header": ("X-Api-Key: ⟪|an|32⟫", "-H 'X-Auth-Token: ⟪|hex|32⟫'"),
    "cookie": ("Cookie: sessionid=⟪|low|32⟫", "Set-Cookie: session=⟪|url|60⟫; HttpOnly"),
    "token-header": ("Authorization: Token ⟪|hex|40⟫", "Authorization: token ⟪|an|40⟫"),
    "pem-rsa": (
        (
            "-----BEGIN RSA PRIVATE KEY-----\n⟪MIIE|b64|60⟫\n⟪|b64|64⟫\n⟪|b64|64⟫\n"
            "-----END RSA PRIVATE KEY-----"
        ),
    ),
    "pem-openssh": (
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\n⟪b3BlbnNzaC1rZXkt|b64|54⟫\n⟪|b64|70⟫\n"
            "-----END OPENSSH PRIVATE KEY-----"
        ),
    ),
    "pem-without-end": ("-----BEGIN EC PRIVATE KEY-----\n⟪MHcC|b64|60⟫\n⟪|b64|64⟫",),
    "pgp": (
        (
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n⟪lQOY|b64|60⟫\n⟪|b64|64⟫\n"
            "-----END PGP PRIVATE KEY BLOCK-----"
        ),
    ),
    "kube-token": (
        "kind: Secret\ndata:\n  token: ⟪ZXlKaGJHY2lP|b64|60⟫",
        "users:\n- name: a\n  user:\n    token: ⟪|an|40⟫",
    ),
    "kube-secret": ("apiVersion: v1\nkind: Secret\ndata:\n  password: ⟪|b64|20⟫==",),
    "kubeadm-join": ("kubeadm join 10.0.0.1:6443 --token ⟪|low|6⟫.⟪|low|16⟫",),
    "docker-login": (
        "docker login -u ci -p ⟪|pw|14⟫ registry.corp.cn",
        "docker login --username=ci --password=⟪|an|14⟫ registry.corp.cn",
    ),
    "netrc": ("machine git.corp.cn login bob password ⟪|pw|14⟫",),
    "pgpass": ("PGPASSWORD=⟪|pw|12⟫ psql -h db",),
    "my-cnf": ("[client]\nuser=root\npassword=⟪|pw|12⟫",),
    "redis-cli": ("redis-cli -h cache -a ⟪|an|14⟫ ping",),
    "postgres-url": (
        "DATABASE_URL=postgresql://kb:⟪|an|14⟫@db:5432/kb",
        "engine postgresql+psycopg://kb:⟪|an|14⟫@db/kb",
    ),
    "mongodb-url": ("mongodb+srv://app:⟪|an|16⟫@c0.abc.mongodb.net/x",),
    "redis-url": ("redis://:⟪|an|16⟫@cache:6379/0",),
    "amqp-url": ("amqp://worker:⟪|an|12⟫@mq:5672//",),
    "jdbc": ("jdbc:mysql://db:3306/x?user=root&password=⟪|an|12⟫&useSSL=false",),
    "ado": ("Server=db;Database=x;User Id=sa;Password=⟪|pw|14⟫;Encrypt=true",),
    "sshpass": ("sshpass -p ⟪|pw|10⟫ ssh root@10.0.0.4 hostname", "sshpass -p'⟪|pw|10⟫' scp x y:"),
    "ipmitool": ("ipmitool -I lanplus -H 10.0.1.3 -U ADMIN -P ⟪|an|12⟫ chassis status",),
    "openssl": ("openssl rsa -in k.pem -passin pass:⟪|an|12⟫",),
    "proxy": (
        "http_proxy=http://bob:⟪|an|10⟫@proxy.corp.cn:3128",
        "export HTTPS_PROXY='http://bob:⟪|an|10⟫@10.1.1.1:8080'",
    ),
    "pypi": (
        "TWINE_PASSWORD=⟪pypi-AgEIcHlwaS5vcmc|url|120⟫",
        "upload with ⟪pypi-AgEIcHlwaS5vcmc|url|120⟫",
    ),
    "npm": ("//registry.npmjs.org/:_authToken=⟪npm_|an|36⟫", "npm ⟪npm_|an|36⟫ revoked"),
    "conda": ("https://conda.anaconda.org/t/⟪tk-|hex|32⟫/chan/linux-64",),
    "vault": ("VAULT_TOKEN=⟪hvs.|url|90⟫", "vault says ⟪hvs.CAES|url|86⟫ is denied"),
    "datadog": ("DD_API_KEY=⟪|hex|32⟫", "DD_APP_KEY=⟪|hex|40⟫"),
    "sentry": ("SENTRY_DSN=https://⟪|hex|32⟫@o44.ingest.sentry.io/123",),
    "sendgrid": ("mail via ⟪SG.|url|22⟫.⟪|url|43⟫",),
    "twilio": ("TWILIO_AUTH_TOKEN=⟪|hex|32⟫",),
    "stripe": ("key ⟪sk_live_|an|24⟫", "STRIPE ⟪rk_live_|an|24⟫"),
    "databricks": ("DATABRICKS_TOKEN=⟪dapi|hex|32⟫", "host ok, ⟪dapi|hex|32⟫ expired"),
    "digitalocean": ("doctl auth init -t ⟪dop_v1_|hex|64⟫",),
    "grafana": ("GF token ⟪glsa_|an|32⟫_⟪|hex|8⟫",),
    "tailscale": ("tailscale up --authkey ⟪tskey-auth-|an|17⟫-⟪|an|32⟫",),
    "age": ("⟪AGE-SECRET-KEY-1|up|58⟫",),
    "wireguard": ("[Interface]\nPrivateKey = ⟪|b64|43⟫=",),
    "notion": ("NOTION ⟪ntn_|an|46⟫", "token=⟪secret_|an|43⟫"),
    "django": ("SECRET_KEY = 'django-insecure-⟪|pw|50⟫'", 'SECRET_KEY="⟪|pw|50⟫"'),
    "jupyter": ("http://127.0.0.1:8888/lab?token=⟪|hex|48⟫",),
    "own-key": ("timeout-kb key ⟪tkb_|url|43⟫",),
    "chinese-password": (
        "数据库密码：⟪|pw|12⟫",
        "登录密码是 ⟪|pw|12⟫，请勿外传",
        "密码为⟪|an|10⟫",
        "root 口令: ⟪|pw|10⟫",
    ),
    "chinese-key": (
        "我们的密钥是⟪|an|32⟫",
        "访问令牌：⟪|an|32⟫",
        "token 是 ⟪|an|24⟫",
        "api key 为 ⟪|an|32⟫",
    ),
    "english-words": (
        "my token is ⟪|an|24⟫",
        "use password ⟪|pw|12⟫ for root",
        "passphrase: ⟪|pw|16⟫",
        "pwd=⟪|pw|10⟫",
    ),
    "email": ("mailto: ⟪zhang.|low|6⟫@corp.example.com", "submitted by ⟪li|low|6⟫@gmail.com"),
    "phone": ("call me at ⟪138|dig|8⟫", "电话：⟪159|dig|8⟫", "手机 +86 ⟪186|dig|8⟫"),
    "identity-number": ("身份证号 ⟪11010119900307|dig|3⟫X", "身份证：⟪320106198807|dig|6⟫"),
    "json": (
        '{"user": "bob", "password": "⟪|pw|12⟫", "n": 3}',
        '{"api_key":"⟪|an|32⟫"}',
        '{"accessToken": "⟪|an|40⟫"}',
    ),
    "escaped-json": (
        '"{\\"user\\": \\"bob\\", \\"password\\": \\"⟪|pw|12⟫\\"}"',
        'env={\\"HF_TOKEN\\":\\"⟪|an|34⟫\\"}',
    ),
    "python-dict": (
        "{'db_password': '⟪|pw|12⟫', 'n': 3}",
        "runtime_env={'env_vars': {'MY_TOKEN': '⟪|an|30⟫'}}",
    ),
    "xml": (
        "<password>⟪|pw|12⟫</password>",
        '<property name="fs.s3a.secret.key" value="⟪|b64|40⟫"/>',
    ),
    "yaml": (
        "db:\n  password: '⟪|pw|12⟫'\n  port: 1",
        "smtp_password: ⟪|pw|12⟫",
        "api-key: ⟪|an|32⟫",
    ),
    "ini": ("fs.s3a.secret.key=⟪|b64|40⟫", "spark.hadoop.fs.oss.accessKeySecret ⟪|an|30⟫"),
    "namespace": ("Namespace(lr=0.1, api_key='⟪|an|32⟫', n=3)", "Config(token='⟪|an|30⟫')"),
    "environ-code": (
        'os.environ["MY_SECRET"] = "⟪|an|24⟫"',
        'os.environ.setdefault("ES_PASSWORD", "⟪|pw|12⟫")',
        "os.putenv('AUTH_TOKEN', '⟪|an|24⟫')",
    ),
    "shell-forms": (
        'declare -x MY_TOKEN="⟪|an|24⟫"',
        "setenv MY_TOKEN ⟪|an|24⟫",
        "set -x MY_TOKEN ⟪|an|24⟫",
        '$env:MY_TOKEN="⟪|an|24⟫"',
        "ENV MY_TOKEN ⟪|an|24⟫",
        "docker run -e MY_TOKEN=⟪|an|24⟫ image",
    ),
    "options": (
        "train.py --api-key ⟪|an|32⟫ --lr 1",
        "train.py --auth_token=⟪|an|32⟫",
        "x --password ⟪|pw|12⟫ --n 2",
        "x --secret-key ⟪|an|30⟫",
    ),
    "slurm-export": ("srun --export=ALL,MY_TOKEN=⟪|an|24⟫,N=3 python x.py",),
    "query": (
        "GET /v1/x?a=1&api_key=⟪|an|32⟫&b=2",
        "POST /cb?access_token=⟪|an|40⟫",
        "wss://h/x?token=⟪|an|32⟫",
    ),
    "url-encoded": (
        "body=user%3Dbob%26password%3D⟪|an|14⟫%26n%3D1",
        "next=%2Fx%3Ftoken%3D⟪|an|32⟫",
        "redirect=https%3A%2F%2Fbob%3A⟪|an|14⟫%40h%2Fx",
    ),
    "bytes-repr": ("b'password=⟪|an|14⟫'", "[b'Authorization: Bearer ⟪|an|40⟫']"),
    "backslash-escapes": ("password=\\u0022⟪|an|14⟫\\u0022", 'p = "token\\x3d⟪|an|32⟫"'),
}

# Shapes that had survived before and were named as such.
KNOWN_MISSES: Mapping[str, Sequence[str]] = {
    "ak-sk": ("ak=⟪|an|20⟫ sk=⟪|an|40⟫", "ak: ⟪|an|20⟫, sk: ⟪|an|40⟫"),
    "ak-slash-sk": ("AK/SK: ⟪|up|20⟫/⟪|an|40⟫", "AK/SK：⟪|up|20⟫ / ⟪|an|40⟫"),
    "mysql-p": ("mysql -uroot -p⟪|an|12⟫ -h db", "mysqldump -u root -p'⟪|pw|12⟫' x"),
    "password-is": ("the password is ⟪|pw|12⟫", "Password is: ⟪|pw|12⟫"),
    "pass-colon": ("pass: ⟪|pw|12⟫", "user: bob pass: ⟪|an|12⟫"),
    "bindpw": ("bindpw=⟪|pw|12⟫", "bindpw ⟪|pw|12⟫"),
    "kube-client-key": ("    client-key-data: ⟪LS0tLS1CRUdJTiB|b64|120⟫==",),
    "docker-auth": (
        '{"auths": {"registry.corp.cn": {"auth": "⟪|b64|26⟫=="}}}',
        '"auth": "⟪|b64|28⟫"',
    ),
    "kube-name-value": (
        "env:\n- name: DB_PASSWORD\n  value: ⟪|pw|12⟫\n- name: N\n  value: 3",
        '{"name": "HF_TOKEN", "value": "⟪|an|30⟫"}',
    ),
    "toml-triple-quotes": ('password = """⟪|pw|12⟫"""', "api_key = '''⟪|an|32⟫'''"),
    "html-entities": (
        "password=&quot;⟪|an|12⟫&quot;",
        "token&#61;⟪|an|32⟫",
        "&lt;password&gt;⟪|an|12⟫&lt;/password&gt;",
    ),
    "wandb-netrc": ("machine api.wandb.ai\n  login user\n  password ⟪|hex|40⟫",),
    "query-key": (
        "GET https://api.corp.cn/v1?key=⟪|an|32⟫&a=1",
        "https://api.corp.cn/v1?sig=⟪|an|40⟫",
    ),
    "webhook": (
        "https://corp.webhook.office.com/webhookb2/⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫@⟪|hex|8⟫/IncomingWebhook/⟪|hex|32⟫/x",
    ),
}

# Written after the first were mended, and harder on purpose: 99 of 136 went (.728).
SECOND_SIGHT: Mapping[str, Sequence[str]] = {
    "linear": ("LINEAR ⟪lin_api_|an|40⟫",),
    "zhipu": ("ZHIPUAI_API_KEY=⟪|hex|32⟫.⟪|an|16⟫", "glm key ⟪|hex|32⟫.⟪|an|16⟫"),
    "snowflake": ("snowsql -a acc -u bob --private-key-passphrase ⟪|pw|12⟫",),
    "artifactory": ("X-JFrog-Art-Api: ⟪AKCp8|an|64⟫",),
    "cloudflare": ("CLOUDFLARE_API_TOKEN=⟪|url|40⟫",),
    "heroku": ("HEROKU_API_KEY=⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",),
    "mailgun": ("key ⟪key-|hex|32⟫",),
    "ssh-askpass": ("SSHPASS=⟪|pw|12⟫ sshpass -e ssh x",),
    "wget": ("wget --user=bob --password=⟪|pw|12⟫ http://x",),
    "rsync": ("RSYNC_PASSWORD=⟪|pw|12⟫",),
    "git-config": ("url.https://oauth2:⟪|url|20⟫@gitlab.corp.insteadOf",),
    "helm": ("helm upgrade x --set auth.password=⟪|pw|12⟫",),
    "kubectl": (
        "kubectl create secret generic s --from-literal=token=⟪|an|24⟫",
        "kubectl --token=⟪|an|40⟫ get po",
    ),
    "ray": ("ray start --redis-password='⟪|an|14⟫'",),
    "spark": ("--conf spark.hadoop.fs.s3a.access.key=⟪|up|20⟫",),
    "lark": ("app_secret: ⟪|an|32⟫", "FEISHU_APP_SECRET=⟪|an|32⟫"),
    "dingsign": ("secret=⟪SEC|hex|64⟫",),
    "mlflow": ("MLFLOW_TRACKING_PASSWORD=⟪|pw|12⟫",),
    "clearml": (
        "CLEARML_API_SECRET_KEY=⟪|an|48⟫",
        'api { credentials {"access_key" = "⟪|up|20⟫" "secret_key" = "⟪|an|48⟫"} }',
    ),
    "aim": ("Proxy-Authorization: Basic ⟪|b64|24⟫==",),
    "sudo": ("echo ⟪|pw|10⟫ | sudo -S dmesg",),
    "chpasswd": ("echo 'root:⟪|pw|12⟫' | chpasswd",),
    "zh2": ("服务器账号 root 密码 ⟪|pw|12⟫", "用户名：bob，密码：⟪|pw|12⟫", "wifi密码是：⟪|an|10⟫"),
    "zh3": ("secret key 是 ⟪|an|32⟫", "AK 为 ⟪LTAI|an|20⟫"),
    "pass2": ("login: bob / ⟪|pw|12⟫", "user bob, pw ⟪|pw|12⟫", "my password was ⟪|pw|12⟫"),
    "otp": ("otpauth://totp/x?secret=⟪|up|32⟫",),
    "sas2": ("SharedAccessSignature=sv=2020&sig=⟪|an|44⟫%3D",),
    "eventhub": ("Endpoint=sb://x/;SharedAccessKey=⟪|b64|43⟫=",),
    "s3url": ("s3://⟪AKIA|up|16⟫:⟪|an|40⟫@bucket/x",),
    "fernet": ("FERNET_KEY=⟪|url|43⟫=",),
    "gpg": ("gpg --batch --passphrase ⟪|pw|14⟫ -d x",),
    "zip": ("7z x -p⟪|pw|12⟫ a.7z", "unzip -P ⟪|pw|12⟫ a.zip"),
    "tf": ("TF_VAR_db_password=⟪|pw|12⟫",),
    "nexus": ("_auth=⟪|b64|28⟫==",),
}

# Written after the second were mended: 106 of 128 went (.828).
THIRD_SIGHT: Mapping[str, Sequence[str]] = {
    "env-json-k8s": (
        '{"env":[{"name":"REDIS_PASSWORD","value":"⟪|pw|14⟫"},{"name":"N","value":"3"}]}',
    ),
    "compose": ("environment:\n  POSTGRES_PASSWORD: ⟪|pw|14⟫\n  POSTGRES_USER: kb",),
    "set-cmd": ("set WANDB_API_KEY=⟪|hex|40⟫",),
    "yaml-list": ('args: ["--hf-token", "⟪hf_|an|34⟫"]',),
    "hydra": ("logger.wandb.api_key=⟪|hex|40⟫ trainer.devices=8",),
    "argparse": ("args: Namespace(batch=8, hf_token='⟪hf_|an|34⟫', seed=1)",),
    "trace": (
        "requests.exceptions.HTTPError: 401 for url: https://api.corp.cn/v1/x?access_key=⟪|an|24⟫&sign=⟪|hex|32⟫",
    ),
    "oss-sign": (
        "https://b.oss-cn-hangzhou.aliyuncs.com/k?OSSAccessKeyId=⟪LTAI|an|20⟫&Expires=1&Signature=⟪|an|26⟫%3D",
    ),
    "cos-sign": (
        "https://b.cos.ap-beijing.myqcloud.com/k?q-sign-algorithm=sha1&q-ak=⟪AKID|an|32⟫&q-signature=⟪|hex|40⟫",
    ),
    "gcs-sign": (
        "https://storage.googleapis.com/b/k?X-Goog-Algorithm=x&X-Goog-Signature=⟪|hex|128⟫",
    ),
    "pipconf": ("index-url = https://bob:⟪|an|14⟫@nexus.corp.cn/repository/pypi/simple",),
    "condarc": ("channels: https://bob:⟪|an|14⟫@conda.corp/x",),
    "aws-config": (
        "[default]\naws_access_key_id=⟪AKIA|up|16⟫\naws_secret_access_key=⟪|b64|40⟫\nregion=cn-north-1",
    ),
    "boto-debug": (
        "Credential=⟪AKIA|up|16⟫/20240101/us-east-1/s3/aws4_request, Signature=⟪|hex|64⟫",
    ),
    "ray-env": (
        'ray job --runtime-env-json=\'{"env_vars": {"HF_TOKEN": "⟪hf_|an|34⟫"}}\' -- python x.py',
    ),
    "sbatch": ("#SBATCH --export=WANDB_API_KEY=⟪|hex|40⟫",),
    "docker-env": ("docker run --gpus all -e HF_TOKEN=⟪hf_|an|34⟫ -e N=3 img",),
    "zh-chat": (
        "账号 admin，密码 ⟪|pw|10⟫，你登上去看看",
        "密码还是原来的⟪|an|10⟫",
        "服务器密码:⟪|pw|10⟫",
    ),
    "en-chat": ("ssh root@10.0.0.5, pass is ⟪|pw|10⟫", "creds: admin/⟪|pw|12⟫"),
    "ipmi": ("ipmitool -H 10.0.0.1 -U root -P '⟪|pw|12⟫' sel list",),
    "ib": ("opensm -c --m_key ⟪0x|hex|16⟫",),
    "ldap": ("ldapsearch -x -D cn=admin -w ⟪|pw|12⟫ -b dc=x",),
    "munge": ("MUNGE_KEY=⟪|b64|44⟫",),
    "jwt-cookie": ("Cookie: token=⟪eyJhbGciOiJIUzI1NiJ9.eyJ|url|30⟫.⟪|url|43⟫",),
    "nvcr": ("docker login nvcr.io -u '$oauthtoken' -p ⟪nvapi-|url|64⟫",),
    "gitremote": ("origin  https://bob:⟪glpat-|url|20⟫@gitlab.corp.cn/o/r.git (fetch)",),
    "email-only": ("Contact: ⟪wang.|low|6⟫@example.org",),
    "tel": ("有问题打我电话 ⟪137|dig|8⟫",),
    "swan": ("swanlab.login(api_key='⟪|an|21⟫')",),
    "vllm-auth": ("vllm serve m --api-key ⟪|an|24⟫ --port 8000", "VLLM_API_KEY=⟪|an|24⟫"),
    "openai-client": ('OpenAI(api_key="⟪|an|24⟫", base_url="http://x/v1")',),
    "curl-key": ("curl http://x/v1/models -H 'Authorization: Bearer ⟪|an|24⟫'",),
}

HARMLESS: Mapping[str, Sequence[str]] = {
    "git-hash": ("commit ⟪|hex|40⟫", "HEAD is now at ⟪|hex|10⟫ fix", "git rev ⟪|hex|40⟫ (dirty)"),
    "image-digest": ("nvcr.io/nvidia/pytorch@sha256:⟪|hex|64⟫", "Digest: sha256:⟪|hex|64⟫"),
    "container-id": ("containerd://⟪|hex|64⟫", "docker-⟪|hex|64⟫.scope"),
    "checksum": ("⟪|hex|32⟫  model.safetensors", "sha256sum ⟪|hex|64⟫", "md5: ⟪|hex|32⟫"),
    "snapshot": ("/root/.cache/huggingface/hub/models--a--b/snapshots/⟪|hex|40⟫/config.json",),
    "nccl-id": (
        "comm ⟪0x55|hex|10⟫ rank 3 nranks 8 commId ⟪0x|hex|16⟫ - Init COMPLETE",
        "ncclUniqueId ⟪|hex|32⟫",
    ),
    "sequence": (
        "WorkNCCL(SeqNum=⟪|dig|5⟫, OpType=ALLREDUCE, NumelIn=⟪13|dig|9⟫, Timeout(ms)=600000)",
        "last enqueued work: ⟪|dig|6⟫, last completed: ⟪|dig|6⟫",
    ),
    "shape": ("input [⟪|dig|2⟫, ⟪|dig|4⟫, ⟪|dig|4⟫] float16", "torch.Size([⟪|dig|3⟫, ⟪|dig|5⟫])"),
    "gpu-uuid": (
        "GPU 3: H100 (UUID: GPU-⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫)",
        "MIG-⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",
    ),
    "uuid": (
        "process group uuid ⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",
        "x-request-id: ⟪|hex|8⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|4⟫-⟪|hex|12⟫",
    ),
    "bus": ("busId ⟪|hex|5⟫ nvmlDev 3", "NVRM: Xid (PCI:0000:⟪|hex|2⟫:00.0): 79, pid=⟪|dig|6⟫"),
    "version": (
        "torch==2.⟪|dig|1⟫.⟪|dig|1⟫+cu12⟪|dig|1⟫",
        "NCCL version 2.⟪|dig|2⟫.⟪|dig|1⟫+cuda12.4",
        "Driver Version: 5⟪|dig|2⟫.⟪|dig|3⟫.0⟪|dig|1⟫",
    ),
    "conda-build": (
        "pytorch 2.1.0 py3.11_cuda12.1_cudnn8.9.2_⟪|dig|1⟫",
        "libgcc-ng 13.2.0 h⟪|hex|7⟫_5",
    ),
    "tokens": (
        "max_tokens: ⟪|dig|4⟫",
        "num_tokens=⟪|dig|6⟫",
        "throughput ⟪|dig|5⟫.2 tokens/s",
        "tokens per second: ⟪|dig|5⟫",
        "token count is ⟪|dig|5⟫",
    ),
    "token-ids": (
        "pad_token_id=⟪|dig|5⟫",
        "eos_token_id: ⟪|dig|5⟫",
        "bos_token=<⟪s|low|2⟫>",
        "special_tokens_map.⟪x|low|3⟫.json",
    ),
    "tokenizer": (
        "tokenizer=meta-llama/Llama-⟪|dig|1⟫-7b-hf",
        "--tokenizer-model /data/⟪tok|low|6⟫.model",
        "tokenizer_path: /m/⟪|low|9⟫/tokenizer.json",
    ),
    "state-keys": (
        'Missing key(s) in state_dict: "layers.⟪|dig|2⟫.attn.key.bias"',
        "KeyError: 'model.layers.⟪|dig|2⟫.self_attn.k_proj.weight'",
        "key=encoder.layer.⟪|dig|2⟫.attention.self.key.weight",
    ),
    "store-keys": (
        "store key: default_pg/0//cuda//⟪|dig|4⟫",
        "Added key: store_based_barrier_key:⟪|dig|2⟫ to store for rank: ⟪|dig|2⟫",
        "wait timeout, key: /torchelastic/agent/⟪t|low|5⟫/barrier",
    ),
    "attention": (
        "key_padding_mask shape [⟪|dig|3⟫]",
        "past_key_values=⟪None|low|1⟫",
        "num_key_value_heads: ⟪|dig|2⟫",
        "key dim: ⟪|dig|4⟫",
    ),
    "passes": (
        "forward pass: ⟪|dig|2⟫.31 s",
        "backward pass took ⟪|dig|4⟫ ms",
        "pass: ⟪|dig|2⟫/100",
        "passed=⟪|dig|3⟫ failed=2",
        "bypass: ⟪true|low|1⟫",
    ),
    "words-of-passwords": (
        "password authentication failed for user ⟪bob|low|4⟫",
        "Permission denied (publickey,password) at ⟪node|dig|3⟫",
        "the password is wrong on ⟪node|dig|3⟫",
        "password incorrect, try ⟪|dig|2⟫",
    ),
    "references": (
        "HF_TOKEN=${⟪HF_TOKEN|up|1⟫}",
        "api_key: ${{ secrets.⟪KEY|up|3⟫ }}",
        "token=$(cat /run/⟪s|low|4⟫/x)",
        "password=os.environ['⟪PW|up|3⟫']",
        "--password-file /run/⟪s|low|6⟫/pw",
    ),
    "empty": (
        "api_key=None, n=⟪|dig|3⟫",
        "use_auth_token=False, seed=⟪|dig|5⟫",
        "token=True rank=⟪|dig|2⟫",
        'password="" port=⟪|dig|4⟫',
        "token: null n: ⟪|dig|3⟫",
    ),
    "code": (
        "def get_⟪p|low|4⟫_password(user: str, token: str) -> None:",
        "self.key = nn.Linear(⟪|dig|4⟫, ⟪|dig|4⟫)",
        "for key, value in ⟪d|low|5⟫.items():",
        "if token == tokenizer.⟪t|low|5⟫:",
    ),
    "not-set": (
        "WANDB_API_KEY is not set on ⟪node|dig|3⟫",
        "no API key found in /root/⟪d|low|5⟫",
        "secret not found: ⟪ns|low|5⟫",
    ),
    "net-env": (
        "NCCL_IB_HCA=mlx5_⟪|dig|1⟫:1",
        "NCCL_SOCKET_IFNAME=eth⟪|dig|1⟫",
        "MASTER_PORT=2⟪|dig|4⟫",
        "CUDA_VISIBLE_DEVICES=⟪|dig|1⟫,⟪|dig|1⟫",
    ),
    "guid": (
        "Node GUID 0x506b4b0300⟪|hex|6⟫",
        "gid fe80:0000:0000:0000:⟪|hex|4⟫:4bff:fe⟪|hex|2⟫:dd22",
        "hwaddr 52:54:00:⟪|hex|2⟫:⟪|hex|2⟫:⟪|hex|2⟫",
    ),
    "times": ("ts=17⟪|dig|8⟫.123", "t_ns=17⟪|dig|17⟫", "2024-03-0⟪|dig|1⟫T12:1⟪|dig|1⟫:33.123456Z"),
    "numbers": (
        "thread ⟪1402|dig|11⟫",
        "numel ⟪135|dig|8⟫ of bucket",
        "bytes=⟪186|dig|8⟫",
        "allocated ⟪159|dig|8⟫ bytes",
        "job ⟪|dig|8⟫",
    ),
    "addresses": (
        "frame #3: <unknown> + ⟪0x7f|hex|10⟫",
        "segfault at ⟪7f|hex|10⟫ ip 0000⟪7f|hex|8⟫",
    ),
    "symbols": ("_ZN4c10d16ProcessGroupNCCL⟪|low|8⟫Ev", "at::native::⟪k|low|9⟫_kernel_impl<float>"),
    "run-ids": (
        "wandb: run-20240101_123456-⟪|low|8⟫",
        "slurmstepd: error: *** JOB ⟪|dig|8⟫ ON node-⟪|dig|3⟫ CANCELLED",
        "run id ⟪|low|8⟫",
    ),
    "pods": (
        "pod/trainer-⟪|hex|9⟫-⟪x|low|4⟫ evicted",
        "job-⟪|dig|5⟫-worker-⟪|dig|2⟫.svc.cluster.local",
    ),
    "accounts": (
        "root@node-⟪|dig|3⟫:~# nvidia-smi",
        "git@github.com:org/⟪r|low|6⟫.git",
        "ssh root@10.0.⟪|dig|1⟫.4",
    ),
    "packages": (
        "scikit-learn==1.⟪|dig|1⟫.2",
        "hf_transfer 0.1.⟪|dig|1⟫",
        "sk-⟪sk|low|1⟫ locale",
        "hf_hub_download(⟪r|low|5⟫)",
    ),
    "metrics": ("loss=2.⟪|dig|5⟫ grad_norm=0.⟪|dig|4⟫", "lr: 1.⟪|dig|3⟫e-05", "mfu ⟪|dig|2⟫.1%"),
    "chinese": (
        "密码错误，第 ⟪|dig|2⟫ 次",
        "token 数量是 ⟪|dig|5⟫",
        "密钥长度为 ⟪2048|dig|1⟫ 位",
        "每秒 ⟪|dig|5⟫ 个 token",
        "关键字 key 为 ⟪|dig|2⟫ 个",
    ),
    "fingerprint": ("ssh-rsa SHA256:⟪|an|43⟫ known", "key fingerprint is SHA256:⟪|an|43⟫"),
    "public-key": (
        "authorized_keys: ⟪3|dig|2⟫ entries",
        "public_key_file=/etc/⟪k|low|5⟫.pub",
        "-----BEGIN CERTIFICATE----- of ⟪node|dig|3⟫",
    ),
    "metrics-path": (
        "GET /v1/models?limit=⟪|dig|3⟫&order=asc",
        "https://pytorch.org/docs/⟪v|low|4⟫/distributed.html?highlight=key",
        "http://10.0.0.⟪|dig|1⟫:29500/",
    ),
    "secrets-words": (
        "secretly ⟪w|low|5⟫",
        "kubectl get secret ⟪reg|low|5⟫ -n train",
        "imagePullSecrets: [⟪reg|low|5⟫]",
        "auth: ⟪none|low|1⟫, tls on",
    ),
    "options": (
        "--key-frames ⟪|dig|3⟫",
        "--max-new-tokens ⟪|dig|4⟫",
        "--token-dropout 0.⟪|dig|2⟫",
        "srun -p ⟪part|low|4⟫ -N 4",
        "ssh -p ⟪22|dig|3⟫ node",
        "mkdir -p /data/⟪d|low|6⟫",
        "docker run -p ⟪80|dig|2⟫:80 x",
    ),
    "settings": (
        "hidden_act: ⟪silu|low|1⟫",
        "keys: ⟪|dig|2⟫",
        "sort_key=⟪len|low|4⟫",
        "primary key (⟪id|low|3⟫)",
        "cache_key: ⟪fa|low|4⟫_kernel",
    ),
}


def _sight(name: str) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
    """The secrets by kind and the look-alikes of a file of this folder."""
    content = yaml.safe_load(Path(__file__).with_name(f"{name}_sight.yaml").read_text("utf-8"))
    secrets = {f"{name}-{kind}": (text,) for kind, text in content["secrets"].items()}
    return secrets, tuple(content["harmless"])


FOURTH_SIGHT, _FOURTH_HARMLESS = _sight("fourth")
FIFTH_SIGHT, _FIFTH_HARMLESS = _sight("fifth")
SIXTH_SIGHT, _SIXTH_HARMLESS = _sight("sixth")

KINDS = {
    **FIRST_SIGHT,
    **KNOWN_MISSES,
    **SECOND_SIGHT,
    **THIRD_SIGHT,
    **FOURTH_SIGHT,
    **FIFTH_SIGHT,
    **SIXTH_SIGHT,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A text, the kind of what stands in it, and the values that must go (or stay)."""

    kind: str
    setting: str
    text: str
    values: tuple[str, ...]


def _fill(template: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The template with drawn values, and these."""
    values: list[str] = []

    def draw(match: re.Match[str]) -> str:
        prefix, alphabet, length = match.groups()
        letters = ALPHABETS[alphabet]
        value = prefix + "".join(rng.choice(letters) for _ in range(int(length)))
        if alphabet in ("pw", "an", "low", "b64", "url") and int(length) >= 8:
            value = value[:-3] + "aQ7" if alphabet != "low" else value[:-3] + "ab7"
        values.append(value)
        return value

    return _VALUE.sub(draw, template), tuple(values)


def _plain(text: str, _: tuple[str, ...]) -> str:
    return text


def _log(text: str, _: tuple[str, ...]) -> str:
    """Every line with the stamp and rank that a launcher puts before it."""
    return "\n".join(
        f"[rank3]: 2024-03-02 12:11:0{n % 10},123 INFO {line}"
        for n, line in enumerate(text.split("\n"))
    )


def _mpirun(text: str, _: tuple[str, ...]) -> str:
    return "\n".join(f"[1,3]<stderr>:{line}" for line in text.split("\n"))


def _colours(text: str, values: tuple[str, ...]) -> str:
    """A colour in the middle of each value, as a highlighting pager leaves it."""
    for value in values:
        half = len(value) // 2
        text = text.replace(value, f"{value[:half]}\x1b[31m{value[half:]}\x1b[0m")
    return text


def _coloured_line(text: str, _: tuple[str, ...]) -> str:
    return "\n".join(f"\x1b[36m(worker pid=4242)\x1b[0m {line}" for line in text.split("\n"))


def _chinese(text: str, _: tuple[str, ...]) -> str:
    return f"我们跑训练的时候卡住了，配置如下：\n{text}\n麻烦看一下是什么原因。"


def _env_block(text: str, _: tuple[str, ...]) -> str:
    return f"NCCL_DEBUG=INFO\nWORLD_SIZE=8\n{text}\nMASTER_ADDR=10.0.0.1\nRANK=3"


SETTINGS = (_plain, _log, _mpirun, _colours, _coloured_line, _chinese, _env_block)


def _samples(kinds: Mapping[str, Sequence[str]], each: int, seed: str) -> Iterator[Sample]:
    for number, (kind, templates) in enumerate(kinds.items()):
        rng = random.Random(f"{seed}/{kind}")
        for turn in range(max(each, len(templates))):
            text, values = _fill(templates[turn % len(templates)], rng)
            setting = SETTINGS[(number + turn) % len(SETTINGS)]
            yield Sample(kind, setting.__name__.strip("_"), setting(text, values), values)


def secrets(
    kinds: Mapping[str, Sequence[str]], *, each: int = 4, seed: str = "secrets"
) -> list[Sample]:
    """Secrets of these kinds, at least `each` of a kind, over all surroundings."""
    return list(_samples(kinds, each, seed))


def harmless(*, each: int = 8) -> list[Sample]:
    """Look-alikes whose values must stay."""
    drawn = [s for s in _samples(HARMLESS, each, "harmless") if s.setting != "colours"]
    known = (*_FOURTH_HARMLESS, *_FIFTH_HARMLESS, *_SIXTH_HARMLESS)
    fixed = [_fill(template, random.Random()) for template in known]
    return drawn + [Sample("known", "plain", text, values) for text, values in fixed]


def survives(sample: Sample, output: str) -> bool:
    """Whether a piece of a secret is still to be read in the output.

    A value of one letter case and digits alone may be short; a piece of it is half of it, or six.
    """
    seen = _ANSI.sub("", output)
    for value in sample.values:
        size = max(min(SHORTEST_PIECE, len(value)), len(value) // 2)
        if any(value[at : at + size] in seen for at in range(len(value) - size + 1)):
            return True
    return False


def destroyed(sample: Sample, output: str) -> bool:
    """Whether a harmless value was changed."""
    return any(value not in output for value in sample.values)
