"""The processes that take part: they live through the whole run, and only one of them is awake at a time."""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time


class Failed(Exception):
    """A participant that ended, hung or answered with an error."""


class TimedOut(Failed):
    """One that gave no answer in time; it has been ended."""


class NotSupported(Exception):
    """What a peer says that it cannot do."""


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Participant:
    def __init__(self, command, environment, cores, log):
        def prepare():
            # A sleeping process would not notice that the driver was killed.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, cores)

        self.command = command
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env={**os.environ, **environment}, preexec_fn=prepare)
        self._sleep()

    def ask(self, timeout=600, **request):
        """The answer to a request. The process, with whatever threads of it may still be spinning, sleeps
        before and after."""
        if self.process.poll() is not None:
            raise Failed("the process has ended")
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        self.process.stdin.flush()
        self._signal(signal.SIGCONT)
        try:
            line = self._read_line(timeout)
        finally:
            self._sleep()
        if not line:
            raise Failed(f"the process ended while answering {request}")
        reply = json.loads(line)
        if "not_supported" in reply:
            raise NotSupported(reply["not_supported"])
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def pid(self):
        return self.process.pid

    def end(self):
        if self.process.poll() is None:
            self._signal(signal.SIGCONT)
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _read_line(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._kill_family()
                raise TimedOut(f"no answer within {timeout} s")
            return self.process.stdout.readline()  # answers are single lines, written at once

    def _kill_family(self):
        """With the compilers that it has started, which are in process groups of their own."""
        self._signal(signal.SIGSTOP)  # so that it starts no more
        for pid in _below(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def _signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def _sleep(self):
        self._signal(signal.SIGSTOP)


def _below(pid):
    """The processes that it has started, and those that they have."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as text:
                parents[int(entry)] = int(text.read().rsplit(")", 1)[1].split()[1])
    found = [pid]
    for parent in found:  # grows as it is read
        found += [child for child, of in parents.items() if of == parent]
    return found[1:]
