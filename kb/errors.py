"""The errors a person meets: each says what was wrong, with which value, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping


class KBError(Exception):
    """Base of all expected failures.

    Attributes:
        what: what was wrong, naming the value.
        todo: the next step for the person.
        reason: names the labels that say both in the person's language, `error.<reason>` and
            `todo.<reason>` of data/labels; that of its class where it has none of its own, empty
            where nobody has written any.
        values: what those labels' braces are filled with, beside `what` and `todo`. `name` is a
            file's own name, without the folder it lies in here, and empty where the input has none.
        code: stable identifier, used as the problem type of the HTTP API.
        http_status: status code the API answers with.
        exit_code: exit code of the command line (1 failure, 2 usage).
    """

    code = "failure"
    http_status = 500
    exit_code = 1
    usual_reason = ""  # says the kind of failure around its own words

    def __init__(
        self,
        what: str,
        *,
        todo: str = "",
        reason: str = "",
        values: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo
        self.reason = reason or self.usual_reason
        self.values = dict(values or {})

    def __str__(self) -> str:
        return f"{self.what} — {self.todo}" if self.todo else self.what


class InputError(KBError):
    """The input cannot be used: empty, binary, unreadable, too large."""

    code = "bad-input"
    http_status = 400
    exit_code = 2


class SlowInputError(InputError):
    """Reading the input takes longer than the caller allows; an archive may unpack without end."""

    code = "too-long"
    http_status = 413


class NotFoundError(KBError):
    """There is nothing under that id."""

    code = "not-found"
    http_status = 404
    exit_code = 1


class SettingsError(KBError):
    """A setting (environment variable, option) has a wrong value."""

    code = "bad-setting"
    exit_code = 2
    usual_reason = "setting"


class DataError(KBError):
    """A file of data/ does not follow its schema."""

    code = "bad-data"
    usual_reason = "data"


class StoreError(KBError):
    """The database cannot be opened, read or written."""

    code = "store"
    usual_reason = "store"


class UnreachableStoreError(StoreError):
    """The database server cannot be reached now; nothing was changed."""

    code = "store-unreachable"
    http_status = 503


class SearchIndexError(KBError):
    """The search index is missing, damaged or was built by something else."""

    code = "index"
    http_status = 503  # nothing was changed, and another try may do
    usual_reason = "index"


class DamagedIndexError(SearchIndexError):
    """Files of the search index are damaged or gone; what they hold can be made anew."""


class UnreachableIndexError(SearchIndexError):
    """The server that has the search index cannot be reached now; nothing was changed."""

    code = "index-unreachable"


class MissingExtraError(KBError):
    """An optional package is needed and not installed."""

    code = "missing-extra"
    exit_code = 2
    usual_reason = "extra"
