"""Section titles, parts and points."""

from __future__ import annotations

import pytest

from ingest.sections import items_of, role_of, split_sections
from ingest.types import ListItem
from ingest.wordlists import WordLists

TITLES = [
    ("问题现象", "symptoms"),
    ("错误现象分析", "symptoms"),
    ("一、问题描述", "symptoms"),
    ("问题背景", "symptoms"),
    ("根本原因分析", "causes"),
    ("可能原因分析", "causes"),
    ("3. 问题原因", "causes"),
    ("【原因分析】", "causes"),
    ("解决方案", "fixes"),
    ("解决方案验证", "fixes"),
    ("## 2.1 修复步骤", "fixes"),
    ("解决方法:", "fixes"),
    ("最佳实践建议", "practices"),
    ("预防措施", "practices"),
    ("总结", "background"),
    ("深入技术原理", "background"),
    ("无效的尝试", "not_helped"),
    ("排查过程", "found"),
    ("验证方法", "verify"),
    ("Symptoms", "symptoms"),
    ("### Describe the bug", "symptoms"),
    ("Root Cause Analysis", "causes"),
    ("Why does it hang", "causes"),
    ("**Solution**", "fixes"),
    ("How we fixed it", "fixes"),
    ("Workaround:", "fixes"),
    ("Best Practices", "practices"),
    ("Lessons learned", "practices"),
    ("What did not work", "not_helped"),
    ("To Reproduce", "found"),
    ("Environment", "background"),
    ("Conclusion", "background"),
    # sentences, points and lead-ins are no titles
    ("这个问题的根本原因是数据划分不一致。", ""),
    ("通过调整以下参数可以有效解决该问题:", ""),
    ("经过排查,这个问题主要与以下因素相关:", ""),
    ("- 解决方案:重启", ""),
    ("We fixed the problem by restarting the job, then it worked.", ""),
    ("the issue", ""),
    ("[rank3]: RuntimeError: NCCL error in: x.cpp:5, unhandled system error, NCCL version", ""),
    ("", ""),
]


@pytest.mark.parametrize(("line", "role"), TITLES, ids=[line[:24] or "empty" for line, _ in TITLES])
def test_role_of_a_line(line: str, role: str, words: WordLists) -> None:
    """Titles tell their role in both languages, numbered or marked; other lines tell none."""
    assert role_of(line, words) == role


def test_parts_follow_headings(words: WordLists) -> None:
    """Text before the first heading has the default role; code with # in it opens no part."""
    lines = ["intro", "## Root cause", "why", "```", "# comment", "```", "## Fix", "do", "## Odd"]
    sections = split_sections([*lines, "end"], words=words, default="symptoms")
    assert [(section.role, section.title, section.text) for section in sections] == [
        ("symptoms", "", "intro"),
        ("causes", "Root cause", "why\n```\n# comment\n```"),
        ("fixes", "Fix", "do"),
        ("other", "Odd", "end"),
    ]


def test_sub_headings_of_a_fix_are_its_points(words: WordLists) -> None:
    """Deeper headings under a fix stay in it and become one point each."""
    lines = ["## Solution", "### 1. Set the seed", "In the split.", "```", "seed(1)", "```"]
    lines += ["### 2. Check the environment", "- see nvcc"]
    (section,) = split_sections(lines, words=words, default="other")
    assert items_of(section.text) == (
        "",
        (
            ListItem(title="Set the seed", text="In the split.", code=("seed(1)",)),
            ListItem(title="Check the environment", steps=("see nvcc",)),
        ),
    )


def test_numbers_go_before_bullets() -> None:
    """Where points are numbered, bullets below a number are its steps, whatever their indent."""
    lines = ["Do this:", "1. **One**: first", "- a", "  - b", "2) Two", "text", "- c"]
    assert items_of("\n".join(lines)) == (
        "Do this:",
        (
            ListItem(title="One", text="first", steps=("a", "b")),
            ListItem(title="Two", text="text", steps=("c",)),
        ),
    )


def test_an_address_has_no_title_before_its_colon() -> None:
    """The colon of a URL or of a qualified name does not end a title."""
    _, items = items_of("- see https://example.org/a\n- call torch::cuda::set(0)")
    assert [item.text for item in items] == ["", ""]


def test_prose_has_no_points() -> None:
    """A part without points is all introduction."""
    assert items_of("One sentence.\nAnother.") == ("One sentence.\nAnother.", ())
