"""What a line of a text stands in: a fence, a traceback, a script, brackets, a form's section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

HEADING_LINES = 80  # below a heading that it still speaks of
BLOCK_SHARE = 1 / 30  # of a block's lines that must bear a sign to say what the block is
FENCED = frozenset(("heading", "list-item", "comment"))  # that mean something else inside a fence
_FENCE = re.compile(r"\s{0,8}(?:```(?!.*`)|~~~)\s?(\w{0,20})")  # not one that ends on its line
_TRACEBACK = re.compile(r"Traceback \(most recent")
_LAST_OF_TRACEBACK = re.compile(r"[\w.]{1,120}(?::|$)")
_HEADING = re.compile(r"#{1,6}\s+\S|\*\*[^*]{2,80}\*\*\s*:?$")
_SECTIONS = {
    "environment": re.compile(
        r"environment|version|system|hardware|环境|版本|系统|配置", re.IGNORECASE
    ),
    "log": re.compile(r"\blogs?\b|output|error|traceback|message|日志|报错|输出", re.IGNORECASE),
    "code": re.compile(r"code|script|reproduc|command|config|代码|脚本|复现|命令", re.IGNORECASE),
    "words": re.compile(
        r"describe|bug|question|problem|expect|happen|问题|描述|期望", re.IGNORECASE
    ),
}
_COLLECT = re.compile(r"(?:PyTorch version|Collecting environment information)\b")
_SCRIPT = re.compile(r"#!|#(?:SBATCH|PBS|BSUB)\b")
_OPENS = re.compile(r"[{\[(]\s*$")
_CLOSES = re.compile(r"\s*[}\])]+[,;]?\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSigns:
    """The signs of a line alone; lines that differ in digits alone share them.

    `stamped` says that a launcher or logger put a rank or a process in front, as nobody writes;
    `decided` is the kind of a line whose looks leave no doubt.
    `looks` are the expressions that match it; they count for the lines beside it, too. `measures`
    are what is counted, and its words; `shared` are those looks that tell of the whole block.
    """

    stamped: bool = False
    decided: str = ""
    looks: Sequence[str] = ()
    measures: Sequence[str] = ()
    shared: Sequence[str] = ()


class LineContext:
    """What the next line stands in: a fence, a traceback, a script, brackets, a form's section."""

    def __init__(self) -> None:
        """At the first line of a text."""
        self._fence = self._section = ""
        self._section_age = self._depth = 0
        self._after_blank = True
        self._continued = self._traceback = self._script = self._collect = False

    def blank(self) -> list[str]:
        """A blank line has no signs; the brackets before it count as closed."""
        self._after_blank, self._depth = True, 0
        return []

    def signs(self, text: str, own: OwnSigns, *, quiet: bool) -> list[str]:
        """The signs of the line's place; the line then is the one before.

        `quiet` says that `_changes_context` is false of it: most lines need no second look.
        """
        if quiet and not self._traceback and not self._fence:
            signs = self._state_signs()
            self._after_blank = self._continued = False
            self._section_age += 1
            return signs
        content = text.strip()
        mark = _FENCE.match(text)
        signs = self._fence_signs(mark, own)
        signs += self._traceback_signs(content, own)
        signs += self._state_signs()
        self._go_on(content, mark)
        return signs

    def _state_signs(self) -> list[str]:
        if not (
            self._script
            or self._collect
            or self._section
            or self._depth
            or self._continued
            or self._after_blank
        ):
            return []
        states = {
            "in-script": self._script,
            "in-collect": self._collect,
            f"below-{self._section}": self._section and self._section_age < HEADING_LINES,
            "in-brackets": self._depth,
            "continued": self._continued,
            "after-blank": self._after_blank,
        }
        return [name for name, holds in states.items() if holds]

    def _fence_signs(self, mark: re.Match[str] | None, own: OwnSigns) -> list[str]:
        if not self._fence or mark is not None:
            return []
        other = [f"fenced-{look}" for look in own.looks if look in FENCED]
        return ["in-fence", f"in-fence-{self._fence}", *other]

    def _traceback_signs(self, content: str, own: OwnSigns) -> list[str]:
        if _TRACEBACK.search(content):
            self._traceback = True
            return []
        if not self._traceback:
            return []
        at_margin = "indent=0" in own.measures
        self._traceback = "python-frame" in own.looks or not at_margin or not _is_last(content)
        return ["in-traceback"] if self._traceback else ["in-traceback", "ends-traceback"]

    def _go_on(self, content: str, mark: re.Match[str] | None) -> None:
        self._after_blank, self._continued = False, content.endswith("\\")
        self._section_age += 1
        self._script = (self._script or bool(_SCRIPT.match(content))) and mark is None
        self._collect = (self._collect or bool(_COLLECT.match(content))) and mark is None
        if _OPENS.search(content):
            self._depth += 1
        elif self._depth and _CLOSES.match(content):
            self._depth -= 1
        if mark:
            self._fence = "" if self._fence else (mark[1].lower() or "plain")
            self._traceback = False
        elif not self._fence and _HEADING.match(content):
            self._section = next((n for n, e in _SECTIONS.items() if e.search(content)), "")
            self._section_age = 0


class FencedBlocks:
    """Lines between two fences: what one alone leaves open, such as an assignment, others tell."""

    def __init__(self) -> None:
        """No fence is open."""
        self._lines: list[tuple[OwnSigns, list[str]]] = []

    def add(self, own: OwnSigns, context: list[str]) -> None:
        """The next line, and its context, to which the block's signs are added once it ends."""
        if "in-fence" in context:
            self._lines.append((own, context))
        else:
            self.close()

    def close(self) -> None:
        """The block is over: all its lines get its signs."""
        size = len(self._lines)
        if size > 1:
            counts = Counter(sign for own, _ in self._lines for sign in own.shared)
            shown = [sign for sign, count in counts.items() if count >= BLOCK_SHARE * size]
            signs = [f"block-{sign}" for sign in shown]
            signs += [f"most-{sign}" for sign in shown if 2 * counts[sign] > size]
            for _, context in self._lines:
                context.extend(signs)
        self._lines.clear()


def changes_context(text: str) -> bool:
    """Whether a line may open or close something that lines below it stand in."""
    content = text.strip()
    return (
        content.endswith("\\")
        or (
            _FENCE.match(content)
            or _COLLECT.match(content)
            or _SCRIPT.match(content)
            or _CLOSES.match(content)
            or _HEADING.match(content)
            or _TRACEBACK.search(content)
            or _OPENS.search(content)
        )
        is not None
    )


def _is_last(content: str) -> bool:
    return _LAST_OF_TRACEBACK.match(content) is not None and not content.startswith("File ")
