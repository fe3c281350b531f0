"""How much slower steps are beside processes that spin, and whether the best peer is slower by more in the
same rounds."""

import os
import signal
import statistics
import subprocess
import sys

from . import rounds

WORKLOADS = ["b128", "c128", "d"]  # unless others are named
PROCESSES = (1, 2, 4)
ROUNDS, ROUNDS_QUICK = 15, 3


def measure(session, ours, name, forms, cores, quick):
    """Rows, one for each number of processes: a round takes everybody's time on the quiet machine, then
    beside one process, and so on. Of the peers' forms those take part that are near the best one on a quiet
    machine."""
    outcome = rounds.Outcome()
    ours.ask(setup=name)
    subject = rounds.Subject(ours, "ours", "loop", "loop")
    subject.probe()
    rounds.prepare_peers(session, name, forms, quick, outcome)
    near = rounds.SLOWER * min((s.probe_ms for s in outcome.peers), default=0)
    subjects = [subject] + [s for s in outcome.peers if s.probe_ms <= near]
    counts = (0, *PROCESSES)
    taken = {n: [] for n in counts}  # of each round the times of all subjects
    with Spinning(max(PROCESSES)) as spinning:
        def one_round():
            times = []
            for n in counts:
                with spinning.some(n):
                    times.append([s.measure(session.seconds) for s in subjects])
            return times

        def keep(times):
            for n, of_all in zip(counts, times):
                taken[n].append(of_all)

        pids = [ours.pid(), *spinning.pids()]
        rounds.repeat(session, outcome, lambda: rounds.quietly(session, pids, one_round), keep)
    return [row(name, n, cores, taken, outcome) for n in PROCESSES]


def row(name, processes, cores, taken, outcome):
    """`share`: the slowdown over that of a process whose threads share the cores evenly with the others."""
    quiet, beside = taken[0], taken[processes]
    slowdown = statistics.median(b[0] / q[0] for q, b in zip(quiet, beside))
    result = {"workload": f"busy-{name}-{processes}", "quiet_ms": _median(t[0] for t in quiet),
              "busy_ms": _median(t[0] for t in beside), "slowdown": _r(slowdown),
              "share": _r(slowdown / (1 + processes / cores)), "ratio_quiet": None, "ratio": None,
              "rounds": len(quiet), "disturbed_rounds": outcome.disturbed}
    if len(quiet[0]) > 1:
        result |= {"peer_quiet_ms": _median(min(t[1:]) for t in quiet),
                   "peer_ms": _median(min(t[1:]) for t in beside),
                   "ratio_quiet": _median(min(t[1:]) / t[0] for t in quiet),
                   "ratio": _median(min(t[1:]) / t[0] for t in beside)}
    return result


class Spinning:
    """Processes of the same priority that use all of a core each, on whichever cores the system puts them;
    they sleep unless asked to spin."""

    def __init__(self, count):
        self._count, self._processes = count, []

    def __enter__(self):
        for _ in range(self._count):
            self._processes.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            self._processes[-1].send_signal(signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()

    def pids(self):
        return [process.pid for process in self._processes]

    def some(self, count):
        return _Some(self.pids()[:count])


class _Some:
    def __init__(self, pids):
        self._pids = pids

    def __enter__(self):
        self._send(signal.SIGCONT)

    def __exit__(self, *_):
        self._send(signal.SIGSTOP)

    def _send(self, number):
        for pid in self._pids:
            os.kill(pid, number)


def _median(values):
    return _r(statistics.median(values))


def _r(value):
    return float(f"{value:.4g}")
