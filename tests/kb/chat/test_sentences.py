"""A message cut into sentences and clauses."""

from __future__ import annotations

import pytest

from kb.chat.sentences import clauses, sentences


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("it hangs. it is slow", ["it hangs.", "it is slow"]),
        ("no. 3 hangs", ["no. 3 hangs"]),
        ("卡住了。重启也没用", ["卡住了。", "重启也没用"]),
        ("它在干嘛?我们没动过", ["它在干嘛?", "我们没动过"]),
        ("没再卡.就是它", ["没再卡.", "就是它"]),
        ("我问的是“为什么？”，不是怎么修", ["我问的是“为什么？”，不是怎么修"]),
        ("torch 2.1.0 还行", ["torch 2.1.0 还行"]),
    ],
)
def test_sentences(text: str, cut: list[str]) -> None:
    """Chinese is cut at the marks of English as well, numbers and quotes are not."""
    assert sentences(text) == cut


@pytest.mark.parametrize(
    ("sentence", "cut"),
    [
        ("it hangs, at step 3", ["it hangs", "at step 3"]),
        ("懂了,谢谢", ["懂了", "谢谢"]),
        ("好吧 再说一遍", ["好吧", "再说一遍"]),
        ("set 1,000 steps", ["set 1,000 steps"]),
    ],
)
def test_clauses(sentence: str, cut: list[str]) -> None:
    """At commas of either kind, and at the blanks that stand for them in Chinese."""
    assert clauses(sentence) == cut
