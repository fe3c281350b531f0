"""Whether a command that takes long is slow or stuck, by what it did lately.

What it wrote, to its output, to files, or to its cache of kernels, is progress. Processor time of it and its
children counts for less: it may be a compiler's, but whoever waits for a GPU that never answers spins, too.
"""

import os
import time

QUIET = 10  # seconds after which nothing written is no progress any more
PATIENCE = 1.5  # times its limit that a command may take which only computes
SLOWEST = 3  # times its limit that a command may take which writes
BUSY = 0.2  # of a core


class Watch:
    """What the processes of a session did, from the one that began it."""

    def __init__(self, session, file, progress=None, clock=time.monotonic):
        self.session, self.file, self.progress, self.clock = session, file, progress, clock
        self.begin = self.looked = clock()
        self.state = None  # of what is written
        self.wrote = None  # when that changed last
        self.moved = self.begin  # when `progress()` did
        self.step = progress() if progress else None
        self.times = [(self.begin, 0.0)]  # processor time, a sample a second

    def look(self):
        now = self.clock()
        if self.progress:
            step = self.progress()
            if step != self.step:
                self.step, self.moved, self.wrote = step, now, now
        if now - self.looked < 0.9 and self.state is not None:
            return
        self.looked = now
        seconds, written = usage(self.session)
        state = os.fstat(self.file.fileno()).st_size + written
        if self.state is not None and state > self.state:
            self.wrote = now
        # What a child wrote is nowhere between its end and its parent's wait for it.
        self.state = max(state, self.state or 0)
        self.times = [sample for sample in self.times if now - sample[0] < 4 * QUIET] + [(now, seconds)]

    def writes(self, within):
        """Whether it wrote lately."""
        return self.wrote is not None and self.clock() - self.wrote <= within

    def computes(self, within):
        """Whether it took much of a core lately."""
        now = self.clock()
        first = next((sample for sample in self.times if now - sample[0] <= within), self.times[-1])
        last = self.times[-1]
        return last[0] > first[0] and last[1] - first[1] > BUSY * (last[0] - first[0])

    def judge(self, seconds, most, stall):
        """Of what kind the end of the command is, and why; nothing where it goes on."""
        passed = self.clock() - self.begin
        if self.progress and stall:
            still = self.clock() - self.moved
            patience = PATIENCE * stall if self.computes(min(QUIET, stall / 2)) else stall
            if still > patience:
                return "hang", f"ended: no progress for {still:.0f} s"
        if most is None:
            return ("limit", f"ended after its limit of {seconds:.0f} s") if passed > seconds else None
        if passed <= min(seconds, most):
            return None
        if most < seconds:
            return "limit", f"ended after its limit of {most:.0f} s"
        quiet = min(QUIET, seconds / 2)
        if self.writes(quiet):
            last = min(most, SLOWEST * seconds)
            how = "slow: it still wrote"
            return ("limit", f"ended after {last:.0f} s, {how}") if passed > last else None
        if self.computes(quiet) and passed <= PATIENCE * seconds:
            return None if passed <= most else ("limit", f"ended after {most:.0f} s, slow: it still computed")
        return "hang", f"ended after its limit of {seconds:.0f} s, having written nothing for {quiet:.0f} s"


def usage(session):
    """(seconds of processors, bytes written) of a session's processes and of their children that have
    ended."""
    seconds, written = 0.0, 0
    tick = os.sysconf("SC_CLK_TCK")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                # The name of a program may hold spaces and brackets.
                fields = file.read().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            seconds += sum(map(int, fields[11:15])) / tick
            with open(f"/proc/{name}/io", encoding="ascii") as file:
                written += sum(int(line.split()[1]) for line in file if line.startswith("wchar:"))
        except (OSError, ValueError, IndexError):
            pass  # it has ended, or nobody may look
    return seconds, written
