"""The machine: what it is, what it can do at most, and whether anybody else is using it."""

import math
import os
import platform
import re
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
SIZES = [1 << 17, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 28]


def description():
    """Facts for the results, without a name of the machine."""
    text = open("/proc/cpuinfo").read()
    field = lambda name: next(iter(re.findall(rf"^{name}\s*:\s*(.*)$", text, re.M)), "")
    flags = set(field("flags").split())
    isa = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else platform.machine()
    memory = int(re.search(r"MemTotal:\s*(\d+)", open("/proc/meminfo").read()).group(1))
    return {"cores": len(os.sched_getaffinity(0)), "isa": isa, "architecture": platform.machine(),
            "processor": field("model name"), "family": field("cpu family"), "cache": field("cache size"),
            "memory_gb": round(memory / 1e6), "kernel": platform.release().split("-")[0],
            "compiler": first_line([os.environ.get("BITALE_CXX", "g++"), "--version"])}


def machine_class(facts):
    return f"{facts['architecture'].replace('_', '-')}-{facts['isa']}-{facts['cores']}cores"


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


class Roofs:
    """Measured by the program bench_roofs."""

    def __init__(self, participant, threads, seconds):
        self._participant, self._threads, self._seconds = participant, threads, seconds
        self.gflops_one = self.gflops = 0
        self.copy, self.read = dict.fromkeys(SIZES, 0), dict.fromkeys(SIZES, 0)
        self.measure()

    def measure(self):
        """Keeps the best of what was ever seen: a roof is not a median."""
        ask = lambda **request: self._participant.ask(seconds=self._seconds, threads=self._threads, **request)
        one = self._participant.ask(roof="fma", threads=1, seconds=self._seconds)
        self.gflops_one = max(self.gflops_one, one["gflops"])
        self.gflops = max(self.gflops, ask(roof="fma")["gflops"])
        for size in SIZES:
            self.copy[size] = max(self.copy[size], ask(roof="copy", bytes=size)["gbs"])
            self.read[size] = max(self.read[size], ask(roof="read", bytes=size)["gbs"])

    def pid(self):
        return self._participant.pid()

    def peak_now(self):
        now = self._participant.ask(roof="fma", threads=self._threads, seconds=0.01)["gflops"]
        self.gflops = max(self.gflops, now)
        return now

    def copy_gbs(self, size):
        return self.copy[_class_of(size)]

    def read_gbs(self, size):
        return self.read[_class_of(size)]

    def long_read_gbs(self):
        return self.read[SIZES[-1]]

    def as_json(self):
        return {"threads": self._threads, "fma_gflops": round(self.gflops, 1),
                "fma_gflops_one_thread": round(self.gflops_one, 1),
                "copy_gbs": {str(size): round(gbs, 1) for size, gbs in self.copy.items()},
                "read_gbs": {str(size): round(gbs, 1) for size, gbs in self.read.items()}}


def _class_of(size):
    """The nearest of the sizes that were measured, by their ratio."""
    return min(SIZES, key=lambda s: abs(math.log(s / max(size, 1))))


class Load:
    """Processor time that was used by others since it was made, stolen time included."""

    def __init__(self, pids):
        self._pids = [os.getpid(), *pids]
        self._start, self._busy, self._own = time.monotonic(), _busy(), self._of_own()
        self._all = _of_all()

    def others(self):
        """(seconds used by others, seconds passed)"""
        busy = _busy() - self._busy - (self._of_own() - self._own)
        return max(0.0, busy), time.monotonic() - self._start

    def names(self):
        """The others that used most, by their commands: what to end before the next run."""
        used = {}
        for pid, (name, seconds) in _of_all().items():
            if pid not in self._pids:
                used[name] = used.get(name, 0) + seconds - self._all.get(pid, (name, 0))[1]
        most = sorted(used.items(), key=lambda item: -item[1])[:3]
        return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in most if seconds > 0)

    def _of_own(self):
        return sum(_of_process(pid) for pid in self._pids)


def _busy():
    values = [int(v) for v in open("/proc/stat").readline().split()[1:9]]
    idle = values[3] + values[4]
    return (sum(values) - idle) / TICK


def _of_all():
    """pid: (command, seconds)"""
    result = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                name, fields = open(f"/proc/{entry}/stat").read().rsplit(")", 1)
                fields = fields.split()
                result[int(entry)] = name.split("(", 1)[1], (int(fields[11]) + int(fields[12])) / TICK
            except (OSError, IndexError):
                continue
    return result


def _of_process(pid):
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    except (OSError, IndexError):
        return 0.0
