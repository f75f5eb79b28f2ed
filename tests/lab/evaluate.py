"""How often the program names the injected cause and rank: ``python -m tests.lab.evaluate DIR``.

Every run is given to the command line program as a person would: the combined log with the evidence
folder (``--input both``) and alone (``log``), which are both measured unless one is chosen, or only
the evidence (``evidence``). Replayed
NCCL logs are counted apart (``--replayed``). A cause counts as right when it is the injected one or
one of `also`; a run has the right culprits when exactly the injected ranks are named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

INPUTS = ("both", "log", "evidence")
MEASURED = ("both", "log")  # where no input is chosen
LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run's truth and the program's answer; `error` when it gave none."""

    name: str
    cause: str
    also: tuple[str, ...]
    culprits: tuple[int, ...]
    or_none: bool
    named: tuple[str, ...]
    ranks: tuple[int, ...]
    fault_type: str
    error: str = ""

    @property
    def first_strict(self) -> bool:
        """The injected cause stands first."""
        return self.named[:1] == (self.cause,)

    @property
    def first(self) -> bool:
        """An acceptable cause stands first."""
        return bool(self.named) and self.named[0] in (self.cause, *self.also)

    @property
    def top3(self) -> bool:
        """An acceptable cause stands among the first three."""
        return any(cause in (self.cause, *self.also) for cause in self.named[:3])

    @property
    def ranks_right(self) -> bool:
        """Exactly the injected ranks are named, or none where nothing can tell."""
        if self.or_none and not self.ranks:
            return not self.error
        return sorted(self.ranks) == sorted(self.culprits)


def diagnose(log: Path | None, evidence: Path | None, home: Path) -> dict[str, object]:
    """Ask the command line program; its JSON answer.

    Raises:
        RuntimeError: the program failed; its last error line is the message.
    """
    program = str(Path(sys.executable).with_name("timeout-kb"))
    command = [program, "diagnose", "--format", "json"]
    command += [str(log)] if log else []
    command += ["--dump", str(evidence)] if evidence else []
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"TIMEOUT_KB_HOME": str(home)},
    )
    if done.returncode not in (0, 3):
        raise RuntimeError((done.stderr.strip().splitlines() or ["no answer"])[-1][:300])
    answer = json.loads(done.stdout)
    return answer if isinstance(answer, dict) else {}


def evaluate_run(
    name: str, truth: Path, log: Path | None, evidence: Path | None, home: Path
) -> Result:
    """Diagnose one run and set it beside its truth."""
    known = json.loads(truth.read_text(encoding="utf-8"))
    error = ""
    answer: dict[str, object] = {}
    try:
        answer = diagnose(log, evidence, home)
    except (RuntimeError, subprocess.TimeoutExpired, json.JSONDecodeError) as problem:
        error = str(problem)
    incident = answer.get("incident")
    incident = incident if isinstance(incident, dict) else {}
    causes = answer.get("causes")
    named = [cause["id"] for cause in causes] if isinstance(causes, list) else []
    if answer.get("status") == "unknown":
        named = ["unknown", *named]
    return Result(
        name=name,
        cause=known["cause"],
        also=tuple(known.get("also", ())),
        culprits=tuple(known["culprits"]),
        or_none=bool(known.get("or_none")),
        named=tuple(named),
        ranks=tuple(culprit["rank"] for culprit in incident.get("culprit_ranks", ())),
        fault_type=str(incident.get("fault_type", "")),
        error=error,
    )


def runs(folder: Path, kind: str, home: Path, *, replayed: bool) -> Iterator[Result]:
    """Results of all runs below a folder, by name."""
    for truth in sorted(folder.glob("*/truth.json")):
        run = truth.parent
        evidence = run / "evidence" if any((run / "evidence").rglob("*.*")) else None
        dumps = run / "evidence" / "dumps"
        evidence = run / "evidence" if any(dumps.iterdir()) else evidence
        if replayed:
            for log in sorted((run / "replayed").glob("*.log")):
                yield evaluate_run(f"{run.name}/{log.stem}", truth, log, None, home)
        elif kind != "evidence" or evidence:
            log_given = None if kind == "evidence" else run / "combined.log"
            yield evaluate_run(
                run.name, truth, log_given, None if kind == "log" else evidence, home
            )


def table(results: Sequence[Result], kind: str = "") -> str:
    """One line a run and the shares below; `kind` says what was given."""
    lines = []
    for item in results:
        marks = ("cause " if item.first else "CAUSE?") + (
            " rank " if item.ranks_right else " RANK?"
        )
        lines.append(
            f"{marks} {item.name:32} {item.cause} {list(item.culprits)} -> "
            f"{', '.join(item.named[:3]) or item.error} {list(item.ranks)} {item.fault_type}"
        )
    with_culprit = [item for item in results if item.culprits and not item.or_none]
    lines.append(
        f"{kind or 'log'}, {len(results)} runs: "
        f"injected cause first {_share(results, 'first_strict')}, "
        f"acceptable cause first {_share(results, 'first')}, "
        f"in the first three {_share(results, 'top3')}, "
        f"culprit ranks right {_share(results, 'ranks_right')}, "
        f"where there is one {_share(with_culprit, 'ranks_right')}"
    )
    return "\n".join(lines)


def _share(results: Sequence[Result], name: str) -> str:
    right = sum(bool(getattr(item, name)) for item in results)
    return f"{right}/{len(results)} ({100 * right / (len(results) or 1):.0f} %)"


def main() -> int:
    """Evaluate a folder of runs."""
    parser = argparse.ArgumentParser(description="Share of lab runs diagnosed rightly.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--input", choices=INPUTS, help="both, and the log alone, when left out")
    parser.add_argument("--replayed", action="store_true", help="the replayed NCCL logs instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="timeout-kb-lab-") as home:  # no state of the user's
        for kind in (options.input,) if options.input or options.replayed else MEASURED:
            given = kind or "log"  # a replay has a log only
            found = runs(options.folder, given, Path(home), replayed=options.replayed)
            sys.stdout.write(table(list(found), given) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
