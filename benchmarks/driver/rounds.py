"""Measuring one workload: everybody sets it up, then alternating rounds on a quiet machine."""

import statistics
import sys

from . import machine, participants, peers

FAR = 5  # forms so many times slower than the best peer are measured by their probe alone
SLOWER = 1.25  # forms of a peer that are slower than its best one by this factor do not go into the rounds
SLOWER_EARLIER = 1.1  # the same for a quick run, by the probes of earlier runs
DISTURBED = 0.1  # share of a core that others may use during a round
TICKS = 0.03  # seconds that the clock of /proc/stat may be wrong by
WEAK = 0.9  # of the best peak seen


class Session:
    """Participants, roofs and settings of a run."""

    def __init__(self, roofs, peers, seconds, rounds, memory):
        self.roofs, self.peers = roofs, peers
        self.seconds, self.rounds = seconds, rounds
        self.memory = memory  # probes of earlier runs, by workload and title of the form

    def load(self, pids):
        """pids: of our processes."""
        return machine.Load([self.roofs.pid(), *pids, *(p.pid() for p in self.peers.values())])


class Subject:
    """One form of one participant, with what was measured of it."""

    def __init__(self, participant, peer, title, form):
        self.participant, self.peer, self.title, self.form = participant, peer, title, form
        self.probe_ms, self.times, self.loss = None, [], None

    def probe(self):
        once = self.participant.ask(form=self.form, warm=0, steps=1)["ms"]
        if once < 200:
            once = self.participant.ask(form=self.form, warm=1, steps=max(1, round(50 / once)))["ms"]
        self.probe_ms = once

    def measure(self, seconds):
        steps = max(1, round(seconds * 1e3 / self.probe_ms))
        # What takes so long does not need its caches warmed.
        warm = max(2, steps // 10) if self.probe_ms < 500 else 0
        reply = self.participant.ask(form=self.form, warm=warm, steps=steps)
        self.probe_ms = min(self.probe_ms, reply["ms"])
        return reply["ms"]

    def median(self):
        return statistics.median(self.times) if self.times else self.probe_ms

    def least(self):
        return min(self.times) if self.times else self.probe_ms


class Outcome:
    """subjects that were in the rounds; others only probed; problems by peer; setup facts of ours."""

    def __init__(self):
        self.ours, self.ours_call, self.peers, self.probed = None, None, [], []
        self.problems, self.setup, self.disturbed, self.rounds = {}, {}, 0, 0


def note(text):
    print(text, file=sys.stderr, flush=True)


def prepare_peers(session, name, forms, quick, outcome):
    """The forms that are worth measuring, set up."""
    found = []
    remembered = session.memory.get(name, {})
    for form in forms:
        if form.process not in session.peers:
            outcome.problems.setdefault(form.peer, "not measured: not installed")
            continue
        if quick and form.peer in peers.SLOW.get(name, ()):
            outcome.problems[form.peer] = "not measured in a quick run: seconds a step"
            continue
        known = [ms for key, ms in remembered.items() if key.startswith(form.peer + ":")]
        earlier = remembered.get(f"{form.peer}: {form.title()}")
        # A quick run believes the last full one about the forms that are far behind.
        if quick and earlier is not None and earlier > SLOWER_EARLIER * min(known):
            continue
        participant = session.peers[form.process]
        try:
            participant.ask(setup=name, form=form.form)
            subject = Subject(participant, form.peer, form.title(), form.form)
            subject.probe()
            found.append(subject)
            remembered[f"{form.peer}: {form.title()}"] = subject.probe_ms
            note(f"    {form.peer}: {form.title()}: {subject.probe_ms:.3f} ms")
        except participants.NotSupported as error:
            outcome.problems[form.peer] = f"not supported by the peer: {error}"
        except participants.Failed as error:
            note(f"    {form.peer}: {form.title()}: {error}")
            outcome.problems[form.peer] = f"not measured: {error}"
    session.memory[name] = remembered
    best = {}
    for subject in found:
        best[subject.peer] = min(best.get(subject.peer, float("inf")), subject.probe_ms)
    far = FAR * min(best.values(), default=0)
    outcome.peers = [s for s in found if s.probe_ms <= min(far, SLOWER * best[s.peer])]
    outcome.probed = [s for s in found if s not in outcome.peers]


def prepare(forms, participants_by_name):
    """Every form set up once: compilers of the peers keep their results on disk."""
    for name, of_one in forms.items():
        for form in of_one:
            if form.process not in participants_by_name or form.peer in peers.SLOW.get(name, ()):
                continue
            try:
                reply = participants_by_name[form.process].ask(setup=name, form=form.form)
                note(f"({name}) {form.peer}: {form.title()}: {reply['setup_s']:.1f} s")
            except (participants.NotSupported, participants.Failed) as error:
                note(f"({name}) {form.peer}: {form.title()}: {error}")


def quietly(session, pids, work):
    """What work() returns, and who disturbed it, if anybody did."""
    load = session.load(pids)
    peak = session.roofs.peak_now()
    result = work()
    peak = min(peak, session.roofs.peak_now())
    others, passed = load.others()
    if others <= DISTURBED * passed + TICKS and peak >= WEAK * session.roofs.gflops:
        return result, None
    return result, f"others used {others:.2f} of {passed:.2f} s ({load.names()}), peak {peak:.0f} GFLOP/s"


def repeat(session, outcome, one_round, keep):
    """Rounds until enough of them were undisturbed, at most twice as many as asked for."""
    tries = 0
    while outcome.rounds < session.rounds and tries < 2 * session.rounds:
        tries += 1
        result, disturbed_by = one_round()
        last_chance = tries - outcome.rounds > session.rounds
        if disturbed_by and not last_chance:
            outcome.disturbed += 1
            note(f"    disturbed: {disturbed_by}; again")
            continue
        outcome.rounds += 1
        keep(result)


def run_rounds(session, ours, subjects, seconds, outcome):
    def one_round():
        return quietly(session, [ours.pid()], lambda: [subject.measure(seconds) for subject in subjects])

    def keep(times):
        for subject, ms in zip(subjects, times):
            subject.times.append(ms)

    repeat(session, outcome, one_round, keep)


def measure(session, ours, name, forms, quick, kernel):
    """ours: the process that answers for us. Kernels are short: measured for a third of the time, and not by
    single calls."""
    outcome = Outcome()
    outcome.setup = ours.ask(setup=name)
    subjects = [Subject(ours, "ours", form, form) for form in ("loop", "call")[:1 if kernel else 2]]
    for subject in subjects:
        subject.probe()
    outcome.ours, outcome.ours_call = subjects[0], None if kernel else subjects[-1]
    prepare_peers(session, name, forms, quick, outcome)
    run_rounds(session, ours, subjects + outcome.peers, session.seconds / (3 if kernel else 1), outcome)
    return outcome
