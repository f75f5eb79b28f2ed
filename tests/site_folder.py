"""A site folder as a team might write it, for the tests of several parts."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "patterns.yaml": """\
- id: team-quobyte-stall
  regex: 'quobyte: request to \\S+ stalled'
  capture: 'request to (?P<volume>\\S+) stalled'
  kind: root
  event: storage
  means: {zh: "Quobyte 请求卡住", en: "a request to Quobyte stalled"}
  causes: {checkpoint-io: 2.5}
  examples: ["quobyte: request to vol7 stalled for 120 s"]
  negatives: ["quobyte: request to vol7 done"]
""",
    "advice.yaml": """\
- id: TEAM_QB_TIMEOUT
  read_by: our launcher
  effect: {zh: "Quobyte 客户端的超时", en: "the timeout of the Quobyte client"}
  sources: ["https://wiki.example.com/qb"]
  unit: s
  rules:
    - {verdict: wrong_value, value: "~[0-5]?[0-9]", explanation: {zh: "太短", en: "too short"}}
""",
    "causes.yaml": """\
- id: checkpoint-io
  fixes:
    - id: checkpoint-io/team-remount
      title: {zh: "重新挂载 Quobyte 卷", en: "Remount the Quobyte volume"}
      steps: []
      commands: ["sudo qb-remount /mnt/qb"]
      status: confirmed
  runbooks:
    - title: {zh: "存储卡住时怎么办", en: "When storage stalls"}
      url: "https://wiki.example.com/storage"
""",
    "hosts.yaml": """\
- name: gpu-node-17
  since: 2026-05-01
  reason: {zh: "NVLink 间歇性报错", en: "NVLink errors now and then"}
""",
    "notices.yaml": """\
- id: storage-maintenance
  text: {zh: "存储正在维护", en: "Storage is under maintenance"}
  url: https://status.example.com/1
- id: long-over
  text: {zh: "早已结束", en: "long over"}
  until: 2020-01-01
- id: network-only
  text: {zh: "只与网络有关", en: "about the network alone"}
  causes: [network-config]
""",
}
LOG = """\
Our job hangs while saving. TEAM_QB_TIMEOUT=30 was set.
[rank3]: quobyte: request to vol7 stalled for 120 s, client gpu-node-17.cluster.local
[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, \
Timeout(ms)=600000) ran for 600068 milliseconds before timing out.
"""


def write_site(folder: Path, case: str = "") -> Path:
    """Make `folder` a site folder; `case` is the text of a case file `team-case.md`."""
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    if case:
        (folder / "cases").mkdir()
        (folder / "cases" / "team-case.md").write_text(case, encoding="utf-8")
    return folder
