"""Two builds of ours side by side, and the old one beside itself: what differs by more than that is said to
be slower or faster."""

import math
import os
import pathlib
import statistics

from . import participants, rounds

ROUNDS = 15
ROUNDS_QUICK = 6
# Rounds from one start of the processes to the next: where their pages lie in the caches changes times too.
ROUNDS_A_START = 3
SIDES = ("new", "old", "again")  # again: the old build once more
SHARE_WITHIN_NOISE = 0.9
BUILD_THEM = "build them there: cmake --build --preset release --target benchmarks"
FORMS = {"bench_steps": ("loop", "call"), "bench_kernels": ("loop",), "bench_shapes": ("call",)}
TINY = {"tiny": "a scalar that is counted", "tiny-output": "a scalar that is counted and returned"}


class Refused(Exception):
    """A build that cannot be compared with."""


def program_for(name, description):
    if name in description["shapes"]:
        return "bench_shapes"
    return "bench_kernels" if name in description["kernels"] else "bench_steps"


def programs_of(build, wanted):
    """The folder of the benchmarks of a build: of a checkout, its build folder, or the folder itself."""
    build = pathlib.Path(build).resolve()
    folders = [build / "build" / "release" / "benchmarks", build / "benchmarks", build]
    # A checkout has sources in benchmarks/, so the programs decide.
    found = next((f for f in folders if any((f / program).is_file() for program in wanted)), None)
    if not found:
        raise Refused(f"--against {build}: no {' or '.join(sorted(wanted))} there, nor in "
                      f"build/release/benchmarks or benchmarks below it; {BUILD_THEM}")
    missing = sorted(program for program in wanted if not os.access(found / program, os.X_OK))
    if missing:
        raise Refused(f"--against {build}: no {', '.join(missing)} in {found}; {BUILD_THEM}")
    return found


def quantile(values, share):
    """Between the two nearest of the values, in proportion."""
    values = sorted(values)
    at = share * (len(values) - 1)
    below = math.floor(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def compare(times):
    """times: milliseconds of each side by rounds. Ratios are the old time divided by the new one, of each
    round: above 1 the new build is faster. The noise is what nine of ten rounds of old against old stay
    within, up or down. Faster and slower are beyond the noise, with three of four rounds on that side of
    1."""
    ratios = [old / new for new, old in zip(times["new"], times["old"])]
    noises = [again / old for old, again in zip(times["old"], times["again"])]
    ratio, low, high = statistics.median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)
    noise = quantile([max(r, 1 / r) for r in noises], SHARE_WITHIN_NOISE)
    verdict = "same"
    if ratio > noise and low > 1:
        verdict = "faster"
    if ratio < 1 / noise and high < 1:
        verdict = "slower"
    return {"new_ms": statistics.median(times["new"]), "old_ms": statistics.median(times["old"]),
            "ratio": ratio, "ratio_low": low, "ratio_high": high,
            "noise_ratio": statistics.median(noises), "noise": noise, "verdict": verdict}


def order(number):
    """Who measures first, second and last in a round: in six rounds each order comes once."""
    turn = number % 3
    sides = list(SIDES[turn:] + SIDES[:turn])
    return sides if number // 3 % 2 == 0 else sides[::-1]


class Sides:
    """Three processes for a workload, started anew every few rounds."""

    def __init__(self, start, name, forms, limit_s):
        self._start, self._name, self._forms, self._limit_s = start, name, forms, limit_s
        self._running, self.subjects = [], {}

    def renew(self):
        self.end()
        self.subjects = {}
        for side in SIDES:
            participant = self._start(side)
            self._running.append(participant)
            participant.ask(timeout=self._limit_s, setup=self._name)
            for form in self._forms:
                self.subjects[side, form] = rounds.Subject(participant, side, form, form)
                self.subjects[side, form].probe()

    def pids(self):
        return [participant.pid() for participant in self._running]

    def end(self):
        for participant in self._running:
            participant.end()
        self._running = []


def measure(session, start, name, facts, program, limit_s):
    """Rows of one workload: one for each of its forms. start(side): a process of that build. limit_s: how
    long a side may take to set up."""
    forms = FORMS[program]
    seconds = session.seconds / (1 if program == "bench_steps" else 3)
    sides = Sides(start, name, forms, limit_s)
    times = {(side, form): [] for side in SIDES for form in forms}
    outcome = rounds.Outcome()

    def one_round():
        if outcome.rounds % ROUNDS_A_START == 0:
            sides.renew()
        return rounds.quietly(session, sides.pids(), lambda: {
            (side, form): sides.subjects[side, form].measure(seconds)
            for form in forms for side in order(outcome.rounds)})

    def keep(measured):
        for key, ms in measured.items():
            times[key].append(ms)

    try:
        rounds.repeat(session, outcome, one_round, keep)
    except participants.Failed as error:
        # Such as a workload that the old build does not know.
        return [{"workload": name} | facts | {"form": form, "why": str(error)} for form in forms]
    finally:
        sides.end()
    rows = []
    for form in forms:
        of_form = {side: times[side, form] for side in SIDES}
        row = {"workload": name} | facts | {"form": form}
        row |= {key: v if isinstance(v, str) else _r(v) for key, v in compare(of_form).items()}
        row |= {"rounds": outcome.rounds, "disturbed_rounds": outcome.disturbed,
                "rounds_ms": {side: [_r(ms) for ms in of_form[side]] for side in SIDES}}
        rows.append(row)
        rounds.note(f"    {form}: {row['ratio']:.3f}, noise {row['noise']:.3f}: {row['verdict']}")
    return rows


def _r(value):
    return float(f"{value:.5g}")
