"""Commands with a limit of time: how each ended, and what it printed."""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from gpu import watching

MOST_OUTPUT = 64 << 20  # a command that prints more is ended
KEPT_OUTPUT = 1 << 20
KILLED = 10  # seconds that a killed process may take to be gone
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Ended:
    """How a command ended."""

    def __init__(self, command, status, how, seconds, text, kind=None):
        self.command, self.status, self.how, self.seconds, self.text = command, status, how, seconds, text
        self.kind = kind  # "crash", "hang", "limit" of time, "refused", or None where it ended by itself

    @property
    def passed(self):
        return self.status == 0 and self.kind is None


running = set()  # process groups that abort() ends
lock = threading.RLock()  # a signal may arrive while the main thread holds it
aborted = threading.Event()


def abort():
    """Ends what is still running, with everything it started; nothing is started any more."""
    with lock:
        aborted.set()
        for group in running:
            _kill(group)


def _kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _prepare():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # ends with the script, even where that is killed


def _read(file):
    """The output; of a very long one its two ends."""
    size = file.seek(0, os.SEEK_END)
    if size <= KEPT_OUTPUT:
        file.seek(0)
        return file.read().decode(errors="replace")
    half = KEPT_OUTPUT // 2
    file.seek(0)
    head = file.read(half).decode(errors="replace")
    file.seek(size - half)
    return f"{head}\n... {size - 2 * half} bytes left out ...\n{file.read().decode(errors='replace')}"


def run(command, seconds, environment=None, folder=None, progress=None, stall=None, most=None):
    """Runs a command, `seconds` at most; where `progress()` stays the same for `stall` seconds, it hangs.

    With `most`, `seconds` is only what it should take: what makes progress then is slow and goes on, `most`
    seconds at most, and what does not hangs.
    """
    begin = time.monotonic()
    if aborted.is_set():
        return Ended(command, None, "did not start: the visit was ended", 0.0, "", "refused")
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
                preexec_fn=_prepare,
            )
        except OSError as problem:
            return Ended(command, None, f"did not start: {problem}", 0.0, "", "refused")
        with lock:
            running.add(process.pid)
        kind, why = None, ""
        try:
            watch = watching.Watch(process.pid, file, progress)
            kind, why = _wait(process, file, watch, seconds, most, stall)
        finally:
            _kill(process.pid)  # what it left behind
            try:
                process.wait(KILLED)
            except subprocess.TimeoutExpired:
                # Uninterruptible: a driver waits for a device that does not answer. The visit goes on without
                # it.
                kind, why = "hang", f"{why or 'ended'}; SIGKILL did not end it within {KILLED} s"
            with lock:
                running.discard(process.pid)
        text = _read(file)
    took = round(time.monotonic() - begin, 2)
    if kind:
        return Ended(command, None, why, took, text, kind)
    if process.returncode < 0:
        number = -process.returncode
        return Ended(
            command,
            process.returncode,
            f"ended by signal {number} ({_signal_name(number)})",
            took,
            text,
            "crash",
        )
    return Ended(command, process.returncode, f"exit status {process.returncode}", took, text)


def _wait(process, file, watch, seconds, most, stall):
    """Nothing once the process has ended by itself, else of what kind its end is, and why."""
    pause = 0.01
    while True:
        try:
            process.wait(pause)
            return None, ""
        except subprocess.TimeoutExpired:
            pause = min(0.2, 2 * pause)
        if os.fstat(file.fileno()).st_size > MOST_OUTPUT:
            return "hang", f"ended: it printed more than {MOST_OUTPUT >> 20} MiB"
        watch.look()
        found = watch.judge(seconds, most, stall)
        if found:
            return found


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def commit_of(root):
    """The commit that is checked out in a folder, or None: what git prints besides is no commit."""
    ended = run(["git", "-C", root, "rev-parse", "HEAD"], 30)
    said = ended.text.strip()
    return said if ended.passed and re.fullmatch("[0-9a-f]{40}", said) else None


def output_of(command, seconds=30, environment=None):
    """What a command prints, or why there is nothing."""
    ended = run(command, seconds, environment)
    return ended.text.strip() if ended.status is not None else f"{os.path.basename(command[0])}: {ended.how}"
