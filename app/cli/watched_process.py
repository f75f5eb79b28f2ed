"""Running a command in one's place: its output passed on unchanged, and a bounded record of it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from kb.errors import KBError

MIB = 1024 * 1024
HEAD_BYTES = 4 * MIB  # versions, settings and start-up stand here
TAIL_BYTES = 16 * MIB  # at least this much of the end is kept
PIPE_BYTES = MIB  # the most an unprivileged process may ask for: fewer switches between the two
RECENT_BYTES = 256 * 1024  # of a stream, kept for who looks at what is new
BLOCK_BYTES = 64 * 1024  # small pieces are gathered up to this size, lines cut at it
DRAIN_S = 2.0  # after the command's end, for output of processes it left behind
POLL_S = 0.05
LOOK_S = 0.5  # how often a silent job is looked at again
SETTLE_S = 5.0  # so long after its silence a job must live to have gone on
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # what a shell answers
BY_SIGNAL = 128  # and the number
FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    }
)
WAITED = FORWARDED | {signal.SIGCHLD, signal.SIGWINCH}
SI_KERNEL = 0x80  # sent by the terminal, to the command as well


class CommandError(KBError):
    """The command cannot be started; `exit_code` is what a shell gives."""

    code = "command"

    def __init__(self, what: str, *, todo: str, exit_code: int) -> None:
        super().__init__(what, todo=todo)
        self.exit_code = exit_code


class OutputRecord:
    """The beginning and the end of what was printed, in whole lines and constant memory.

    Files would cost the command half its speed where it prints a gigabyte.
    """

    def __init__(self, whole: BinaryIO | None = None) -> None:
        """Keep it in memory; `whole`, an unbuffered file, gets everything as well."""
        self._lock = threading.Lock()
        self._whole = whole
        self._head = bytearray()
        self._tail: deque[bytes | bytearray] = deque()
        self._tail_bytes = 0
        self._left_out = 0
        self._pending: dict[int, bytes] = {}
        self._recent: dict[int, bytearray] | None = None
        self._recent_cut = False
        self.log_error = ""  # why `whole` is not whole

    def add(self, stream: int, data: bytes) -> None:
        """Take what `stream` printed; the part of a line waits for its end."""
        end = data.rfind(b"\n") + 1
        with self._lock:
            self._add_recent(stream, data)
            pending = self._pending.pop(stream, b"")
            if not end and len(pending) + len(data) < BLOCK_BYTES:
                self._pending[stream] = pending + data
                return
            end = end or len(data)
            if end < len(data):
                self._pending[stream] = data[end:]
            self._write(pending + data[:end] if pending else data[:end])

    def _add_recent(self, stream: int, data: bytes) -> None:
        if self._recent is None:
            return
        recent = self._recent.setdefault(stream, bytearray())
        recent += data[-RECENT_BYTES:]
        if len(recent) > 2 * RECENT_BYTES or len(data) > RECENT_BYTES:
            del recent[:-RECENT_BYTES]
            self._recent_cut = True

    def keep_recent(self) -> None:
        """From now on `recent` tells what is new."""
        self._recent = {}

    def recent(self) -> tuple[list[bytes], bool]:
        """What each stream printed since this was asked last, and whether it is all of it.

        A line that has no end yet, such as a progress bar, comes again with what follows it.
        """
        with self._lock:
            streams = (self._recent or {}).values()
            pieces = [bytes(recent) for recent in streams]
            for recent in streams:
                del recent[: max(recent.rfind(b"\n"), recent.rfind(b"\r")) + 1]
            whole, self._recent_cut = not self._recent_cut, False
        return pieces, whole

    def finish(self) -> None:
        """Take the lines without an end."""
        with self._lock:
            for stream in sorted(self._pending):
                self._write(self._pending.pop(stream) + b"\n")

    def _write(self, data: bytes) -> None:
        if self._whole is not None and not self.log_error:
            self._log(self._whole, data)
        if len(self._head) < HEAD_BYTES:
            self._head += data
            return
        last = self._tail[-1] if self._tail else b""
        if isinstance(last, bytearray) and len(last) + len(data) <= BLOCK_BYTES:
            last += data
        else:
            self._tail.append(bytearray(data) if len(data) < BLOCK_BYTES else data)
        self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self._left_out += gone

    def _log(self, whole: BinaryIO, data: bytes) -> None:
        """Write all of `data`; a full disk must not stop the command."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[whole.write(rest) :]
        except OSError as error:
            self.log_error = f"the log is not whole: {error.strerror or error}"

    @property
    def size(self) -> int:
        """Bytes taken so far."""
        with self._lock:
            return len(self._head) + self._left_out + self._tail_bytes

    def since(self, size: int) -> bytes:
        """What was taken since the record had `size` bytes, of more than is kept the end."""
        count = self.size - size
        with self._lock:
            kept = b"".join((self._head, *self._tail))
        return kept[-count:] if count > 0 else b""

    def save(self, path: Path) -> None:
        """Write the record so far as one file; a line says what was left out of the middle."""
        with self._lock, path.open("wb") as file:
            file.write(self._head)
            if self._left_out:
                file.write(b"(%d bytes of output left out here)\n" % self._left_out)
            file.writelines(self._tail)
            # A job that hangs often does so amid a line: behind a progress bar or "waiting ...".
            file.writelines(self._pending[stream] + b"\n" for stream in sorted(self._pending))


class WatchedProcess:
    """A running command whose output is passed on as it comes."""

    def __init__(self, command: Sequence[str], record: OutputRecord) -> None:
        """Start it.

        Raises:
            CommandError: it is not there or cannot be run.
        """
        self._record = record
        self.printed_at = time.monotonic()  # when something was printed last
        # Blocked before the start, so that none is lost between it and the first wait.
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
        channels = _channels()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdout=channels[0].inner,
                stderr=channels[-1].inner,
                preexec_fn=self._unblock,  # noqa: PLW1509 - no thread runs yet
            )
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            missing = isinstance(error, FileNotFoundError)
            raise CommandError(
                f"{command[0]}: {error.strerror}",
                todo="check the command after --",
                exit_code=NOT_FOUND if missing else NOT_EXECUTABLE,
            ) from error
        finally:
            for channel in channels:
                os.close(channel.inner)
        self._channels = channels
        self._relays = [
            threading.Thread(target=self._relay, args=(channel,), daemon=True)
            for channel in channels
        ]
        for relay in self._relays:
            relay.start()

    def _unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def wait(self) -> int:
        """Wait for its end, passing signals on; its exit code, 128 and more for a signal."""
        while self._process.poll() is None:
            sent = signal.sigwaitinfo(WAITED)
            if sent.si_signo == signal.SIGWINCH:
                for channel in self._channels:
                    channel.resize()
            elif sent.si_signo in FORWARDED and sent.si_code != SI_KERNEL:
                self._process.send_signal(sent.si_signo)
        _take_signals()  # what was meant for the command, which was faster
        self._drain()
        self._record.finish()
        _take_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        code = self._process.returncode
        return code if code >= 0 else BY_SIGNAL - code

    def _drain(self) -> None:
        """Wait until all is passed on; a signal ends the wait for a reader that does not read."""
        ended_s = time.monotonic()
        stopped = False
        for relay, channel in zip(self._relays, self._channels, strict=True):
            while relay.is_alive():
                relay.join(POLL_S)
                stopped = _take_signals() or stopped
                if stopped and channel.reading_since == math.inf:
                    break
                # A slow reader of ours is waited for, a process left behind that prints nothing not
                if time.monotonic() - max(channel.reading_since, ended_s) > DRAIN_S:
                    break

    @property
    def pid(self) -> int:
        """The id of the command's process."""
        return self._process.pid

    @property
    def output_error(self) -> str:
        """Why not all of its output was passed on; empty where it was, or nobody is there."""
        return next((channel.error for channel in self._channels if channel.error), "")

    def _relay(self, channel: _Channel) -> None:
        """Pass on what comes, and keep it; a training run outlives whoever watched it print."""
        while data := channel.read():
            self.printed_at = time.monotonic()
            self._record.add(channel.outer, data)  # first: our reader may never take it
            channel.write(data)
        os.close(channel.reader)


class _Channel:
    """One stream of the command: a pipe, or a terminal where ours is one."""

    def __init__(self, outer: int) -> None:
        self.outer = outer
        self._taken = True  # until the reader is gone
        self.error = ""  # why a piece was not taken
        self.reading_since = math.inf  # monotonic; infinite while something is passed on
        self.terminal = os.isatty(outer)
        if self.terminal:
            self.reader, self.inner = os.openpty()
            # Ours ends lines for the screen; done twice, the bytes would not be the command's.
            mode = termios.tcgetattr(self.inner)
            mode[1] &= ~termios.OPOST
            termios.tcsetattr(self.inner, termios.TCSANOW, mode)
            self.resize()
        else:
            self.reader, self.inner = os.pipe()
            with contextlib.suppress(OSError):  # a user above the limit of all pipes keeps 64 KiB
                fcntl.fcntl(self.inner, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def resize(self) -> None:
        """Give the command's terminal the size of ours."""
        if self.terminal:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.reader, termios.tcgetwinsize(self.outer))

    def read(self) -> bytes:
        """What came, empty at the end."""
        self.reading_since = time.monotonic()
        try:
            return os.read(self.reader, PIPE_BYTES)
        except OSError:
            return b""  # how a terminal says that nobody writes any more
        finally:
            self.reading_since = math.inf

    def write(self, data: bytes) -> None:
        """Write all of `data` to our stream, for as long as it takes any."""
        rest = memoryview(data)
        while rest and self._taken:
            try:
                rest = rest[os.write(self.outer, rest) :]
            except BlockingIOError:  # somebody made our stream non-blocking
                select.select([], [self.outer], [])
            except OSError as error:
                self._taken = error.errno not in (errno.EPIPE, errno.EIO)
                if self._taken:  # a full disk may have room for the next piece
                    self.error = f"some output is lost: {error.strerror}"
                    return


def _take_signals() -> bool:
    """Whether a signal that is passed on came; it is taken."""
    came = False
    while signal.sigtimedwait(FORWARDED, 0) is not None:
        came = True
    return came


def _channels() -> list[_Channel]:
    """Ours for both streams: one where both are the same terminal, to keep their order."""
    with contextlib.suppress(OSError):  # what we have said so far may have no reader any more
        sys.stdout.flush()
        sys.stderr.flush()
    out, err = sys.stdout.fileno(), sys.stderr.fileno()
    # By device: a terminal handed into a container may have no name there.
    if os.isatty(out) and os.isatty(err) and os.fstat(out).st_rdev == os.fstat(err).st_rdev:
        return [_Channel(out)]
    return [_Channel(out), _Channel(err)]


class SilenceWatch:
    """Calls `act` once whenever a job has printed nothing for `after_s` seconds.

    When it prints again and still runs a little later, `went_on` is given how long it was silent.
    """

    def __init__(
        self,
        process: WatchedProcess,
        after_s: float,
        act: Callable[[], None],
        went_on: Callable[[float], None],
    ) -> None:
        """Watch in a thread until `stop`."""
        self._process, self._after_s = process, after_s
        self._act, self._went_on = act, went_on
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            quiet_since = self._process.printed_at
            left = quiet_since + self._after_s - time.monotonic()
            if self._stopped.wait(max(left, 0.0)):
                return
            if self._process.printed_at != quiet_since:
                continue
            self._act()
            while self._process.printed_at == quiet_since:
                if self._stopped.wait(min(self._after_s, LOOK_S)):
                    return
            silent_s = self._process.printed_at - quiet_since
            if self._stopped.wait(min(self._after_s, SETTLE_S)):
                return  # what it printed were its last words
            self._went_on(silent_s)

    def stop(self) -> None:
        """End, after a diagnosis that is being written."""
        self._stopped.set()
        self._thread.join()


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP stop what is done after the job as Ctrl-C does, with a clean end.

    Python ignores what is raised inside a callback of the garbage collector: it is raised again.
    """
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL  # under nohup it is not
    ]
    taken = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    taken[signal.SIGALRM] = signal.signal(signal.SIGALRM, signal.default_int_handler)
    report = sys.unraisablehook

    def again(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            report(ignored)

    sys.unraisablehook = again
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = report
        for number, handler in taken.items():
            signal.signal(number, handler)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for the record."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:  # a signal amid this would leave a folder nobody knows of
        return tempfile.TemporaryDirectory(prefix="timeout-kb-watch-")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
