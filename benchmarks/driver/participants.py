"""The processes that take part: they live through the whole run, and only one of them is awake at a time."""

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
            os.setpgid(0, 0)  # so that the compilers that it has started can be ended with it
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
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise TimedOut(f"no answer within {timeout} s")
            return self.process.stdout.readline()  # answers are single lines, written at once

    def _signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def _sleep(self):
        self._signal(signal.SIGSTOP)
