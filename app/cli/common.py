"""What the verbs share: the state of one invocation, common options, output."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from kb.errors import KBError
from kb.settings import Settings, load_settings, shipped_data
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat
    from kb.knowledge.labels import Words
    from kb.service import Service
    from kb.types.answer import Diagnosis
    from kb.types.knowledge import Bilingual

EXIT_DIAGNOSED = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_UNDECIDED = 3  # unknown cause, or no timeout in the input
FILE_WIDTH = 100  # where the output is not a terminal
READ_SIZE = 1 << 20
LOG_BYTES = 1024 * 1024  # two files of this size hold the last failures

F = TypeVar("F", bound=Callable[..., Any])
OpenService = Callable[..., "Service"]


def _open_service(
    settings: Settings, *, notify: Callable[[str], None], rebuild: bool = False
) -> Service:
    from kb.bootstrap import open_service

    return open_service(settings, notify=notify, rebuild=rebuild)


def _open_chat(service: Service) -> Chat:
    from kb.chat.chat import Chat

    return Chat(service)


@dataclass(kw_only=True)
class State:
    """One invocation: settings are read once, on first use; tests pass their own parts."""

    debug: bool = False
    colour: bool | None = None  # None: where the output is a terminal
    requested_language: Language | None = None  # by --lang
    announces: bool = True  # a server says where it answers; under `up` that does
    open_service: OpenService = _open_service
    open_chat: Callable[[Service], Chat] = _open_chat
    settings_source: Callable[[], Settings] = load_settings
    _settings: Settings | None = field(default=None, init=False)

    @property
    def settings(self) -> Settings:
        """The settings.

        Raises:
            SettingsError: a setting has a wrong value.
        """
        if self._settings is None:
            self._settings = self.settings_source()
        return self._settings

    def settings_at(self, host: str | None, port: int | None) -> Settings:
        """The settings with what `--host` and `--port` say, where they say something."""
        settings = self.settings
        return replace(
            settings,
            host=settings.host if host is None else host,
            port=settings.port if port is None else port,
        )

    @contextlib.contextmanager
    def service(self, *, rebuild: bool = False) -> Iterator[Service]:
        """The opened knowledge base, closed at the end; what it says goes to stderr."""
        service = self.open_service(self.settings, notify=note, rebuild=rebuild)
        try:
            yield service
        finally:
            service.close()

    def unexpected_error_line(self, error: Exception) -> str:
        """An unexpected failure in one line, its traceback being kept in a file."""
        from kb.text.redact import redact

        try:
            place = f"details: {_log_traceback(error, self.settings.home / 'logs')}"
        except (OSError, KBError):
            place = "run again with: timeout-kb --debug ..."
        return f"unexpected {type(error).__name__}: {redact(str(error))[0]} — {place}"

    def language(self, requested: Language | None) -> Language | None:
        """The language asked for, else that of the settings, else None (that of the input)."""
        from kb.text.language import language_choice

        return language_choice(requested, self.settings.lang)

    def words(self, input_language: Language | None = None) -> Words:
        """The shipped labels in the language asked for, else `input_language`, else English.

        Raises:
            DataError: there are none.
        """
        from kb.knowledge.labels import Words
        from kb.knowledge.load import read_labels
        from kb.text.language import answer_language

        try:
            language = self.language(self.requested_language)
        except KBError:  # the settings are what is wrong
            language = None
        return Words(
            read_labels(shipped_data() / "labels"),
            answer_language(language, fallback=input_language),
        )

    def error_line(self, error: KBError, input_language: Language | None = None) -> str:
        """An expected failure in one line: what was wrong, and the next step."""
        from kb.text.redact import redact

        whole = f"error: {redact(str(error))[0]}"
        try:
            words = self.words(input_language)
        except KBError:  # the labels are what is wrong
            return whole
        if words.language == "en":
            return whole  # names the whole path
        from app.render.errors import error_sentence

        return words("word.error", what=error_sentence(error, words))


def _log_traceback(error: Exception, folder: Path) -> Path:
    """Append the traceback without secrets to the log file, of bounded size, and give its path."""
    import logging
    import traceback
    from logging.handlers import RotatingFileHandler

    from kb.files.state_folder import make_state_folder
    from kb.text.redact import redact

    text, _ = redact(f"{sys.argv}\n{''.join(traceback.format_exception(error))}")
    make_state_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    path = folder / "timeout-kb.log"
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    try:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger = logging.Logger("timeout-kb")
        logger.addHandler(handler)
        logger.error("unexpected failure: %s", text)
    finally:
        handler.close()
    return path


def colour_choice(requested: bool | None, environ: Mapping[str, str]) -> bool | None:
    """Whether to colour: as asked for, not under NO_COLOR or TERM=dumb, else as the output is.

    Source: https://no-color.org (any value but an empty one counts).
    """
    if requested is not None:
        return requested
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return False if plain else None


def note(message: str) -> None:
    """Tell the person something that is not the answer."""
    click.echo(message, err=True)


def text_width() -> int:
    """The cells to lay out for: the window's, or a fixed number for files and pipes."""
    from app.render.columns import fit_width

    if not sys.stdout.isatty():
        return FILE_WIDTH
    return fit_width(shutil.get_terminal_size().columns)


def write(state: State, text: str) -> None:
    """Print `text`; without colours unless wanted or the output is a terminal."""
    click.echo(text, nl=False, color=state.colour)


def write_diagnosis(
    state: State,
    diagnosis: Diagnosis,
    labels: Mapping[str, Bilingual],
    form: str,
    *,
    full: bool = False,
    err: bool = False,
) -> None:
    """Print an answer in a form of `render_diagnosis`; `err`: to standard error."""
    from app.render.forms import render_diagnosis

    text = render_diagnosis(diagnosis, labels, form, width=text_width(), full=full)
    click.echo(text, nl=False, err=err, color=state.colour)


def write_change(
    state: State, first: Diagnosis, better: Diagnosis, labels: Mapping[str, Bilingual]
) -> None:
    """Print what a language model changed of the answer printed before."""
    from app.render.terminal import render_change
    from kb.knowledge.labels import Words

    text = render_change(first, better, Words(labels, better.language), width=text_width())
    click.echo(text, nl=False, color=state.colour)


def write_json(value: object) -> None:
    """Print `value` as indented JSON in the order of its fields."""
    import msgspec

    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(encoded.decode())


def stdin_stream() -> BinaryIO:
    """Standard input; who types there is told how to end it."""
    if sys.stdin.isatty():
        note("Paste the log, then press Ctrl-D on an empty line.")
    return sys.stdin.buffer


def stdin_chunks() -> Iterator[bytes]:
    """What comes in on standard input, in pieces of bounded size, as it comes."""
    stream = stdin_stream()
    read = getattr(stream, "read1", stream.read)
    while chunk := read(READ_SIZE):
        yield chunk


def _remember_language(
    context: click.Context, _parameter: click.Parameter, language: Language | None
) -> Language | None:
    """Failures are told in the language asked for as well."""
    state = context.find_object(State)
    if state is not None:
        state.requested_language = language
    return language


def usage(name: str, **values: object) -> click.UsageError:
    """A wrong command line, told by the label `name`."""
    state = click.get_current_context().find_object(State) or State()
    return click.UsageError(state.words()(name, **values))


def address_options(default_port: str) -> Callable[[F], F]:
    """``--host`` and ``--port`` of a server."""

    def add(function: F) -> F:
        port = click.option(
            "--port", type=click.IntRange(0, 65535), help=f"Default: {default_port}."
        )
        host = click.option(
            "--host", help="Address to listen on. Default: TIMEOUT_KB_HOST or 127.0.0.1."
        )
        return host(port(function))

    return add


def language_option(function: F) -> F:
    """``--lang zh|en``."""
    return click.option(
        "--lang",
        "language",
        type=click.Choice(["zh", "en"]),
        callback=_remember_language,
        help="Language of the answer. Default: TIMEOUT_KB_LANG, else that of the input.",
    )(function)


def torch_option(function: F) -> F:
    """``--torch VERSION``."""
    return click.option(
        "--torch",
        metavar="VERSION",
        help="torch version to give advice for, where the log does not name it.",
    )(function)


def format_option(*formats: str) -> Callable[[F], F]:
    """``--format`` with the given choices, the first one being the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


def check_sources(files: tuple[Path, ...], *, dumps: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The files to read; ``-`` alone (standard input) where none is named and something comes in.

    Raises:
        click.UsageError: there is nothing to read, or ``-`` stands beside files.
    """
    dash = Path("-")
    if dash in files and len(files) > 1:
        raise usage("usage.dash_alone")
    if files or dumps:
        return files
    if sys.stdin.isatty():
        raise usage("usage.no_log")
    return (dash,)
