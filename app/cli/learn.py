"""`timeout-kb learn`: weights refitted with the team's confirmed outcomes, kept behind a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.cli.common import EXIT_FAILURE, State, format_option, language_option, note, write_json

if TYPE_CHECKING:
    from kb.knowledge.labels import Words
    from kb.train.outcomes import LearningResult, OutcomeCount
    from kb.types.knowledge import Cause

SHOWN_CORRECTIONS = 12  # strongest first; the file has all of them
SHOWN_ORIGINS = 8


@click.command("learn")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--undo", is_flag=True, help="Bring the former weights back.")
@language_option
@format_option("text", "json")
@click.pass_context
def command(context: click.Context, dry_run: bool, undo: bool, language: None, form: str) -> None:
    """Learn from your team's resolved incidents and from answers judged right or wrong.

    New weights are kept only where your own past incidents, held out, are answered better and the
    shipped golden reports no worse. Exit code 1 where nothing is kept. Running servers use new
    weights from the next diagnosis on.
    """
    state = context.find_object(State) or State()
    if undo:
        _undo(context, state)
        return
    from kb.diagnose.learned import encoded, keep_learned, learned_files
    from kb.train.outcomes import learn

    with state.service() as service:
        result = learn(service)
        words, causes = state.words(), service.knowledge.cause_by_id
    home, learned, place = state.settings.home, result.learned, ""
    if learned is not None and not dry_run:
        files = learned_files(home)
        same = bool(files) and files[-1].read_bytes() == encoded(learned)
        place = str(files[-1] if same else keep_learned(home, learned))
    if form == "json":
        write_json(result)
    else:
        for line in report_lines(result, words, causes):
            click.echo(line)
        if learned is not None:
            click.echo(words("learn.kept", path=place) if place else words("learn.dry_run"))
    if learned is None:
        context.exit(EXIT_FAILURE)


def _undo(context: click.Context, state: State) -> None:
    from kb.diagnose.learned import learned_files, undo_learned

    words = state.words()
    gone = undo_learned(state.settings.home)
    if gone is None:
        note(words("learn.nothing_to_undo"))
        context.exit(EXIT_FAILURE)
    before = learned_files(state.settings.home)
    now = str(before[-1]) if before else words("learn.shipped")
    click.echo(words("learn.undone", path=str(gone), now=now))


def report_lines(result: LearningResult, words: Words, causes: dict[str, Cause]) -> list[str]:
    """What was learned, or why nothing is kept, a line each."""
    lines = [words("learn.outcomes", count=result.outcomes)]
    if result.left_out:
        lines.append(words("learn.left_out", count=result.left_out))
    for name, pair in (("learn.team", result.team), ("learn.golden", result.golden)):
        if pair is not None:
            lines.append(
                words(name, before=_figures(pair[0], words), after=_figures(pair[1], words))
            )
    for cause, (before, after) in result.changed.items():
        title = causes[cause].title.get(words.language)
        lines.append(words("learn.changed", title=title, before=before, after=after))
    if result.learned is not None:
        corrections = [
            (nats, name, cause)
            for name, own in result.learned.corrections.items()
            for cause, nats in own.items()
        ]
        corrections.sort(key=lambda item: (-abs(item[0]), item[1], item[2]))
        lines += [
            words("learn.correction", name=name, cause=cause, nats=f"{nats:+.2f}")
            for nats, name, cause in corrections[:SHOWN_CORRECTIONS]
        ]
        hidden = len(corrections) - SHOWN_CORRECTIONS
        if hidden > 0:
            lines.append(words("learn.more", count=hidden))
    if result.why:
        named = words.listing(result.contradicted[:SHOWN_ORIGINS])
        lines.append(words(f"learn_why.{result.why}", named=named))
    return lines


def _figures(tally: OutcomeCount, words: Words) -> str:
    return words(
        "learn.figures",
        count=tally.count,
        first=tally.first,
        three=tally.three,
        share=f"{tally.share:.3f}",
    )
