"""What is measured of us alone: overhead, threads that call at once, compile time, storage of images, clipped
gradients."""

import concurrent.futures
import statistics
import tempfile

from . import against, rounds

NAMES = ["overhead", "threads", "compile", "storage", "bytes", "clip"]
PAIRS = 5
BYTES_ROUNDS = 15
CLIP_ROUNDS = 15
BYTES = ["uint8", "int8", "uint4", "uint2", "uint1"]


class Maker:
    """Starts processes of ours."""

    def __init__(self, start, seconds, cores):
        self.start, self.seconds, self.cores = start, seconds, cores  # start(flags) -> Participant

    def steps(self, workload, storage="uint8", flags="", clip=0):
        participant = self.start(flags)
        facts = participant.ask(setup=workload, storage=storage, clip=clip)
        subject = rounds.Subject(participant, "ours", "loop", "loop")
        return subject, facts


def overhead(maker, names):
    """Microseconds of a call of a function that adds two numbers, and of a step of a loop of one."""
    participant = maker.start("")
    rows = []
    try:
        for kind in ("tiny", "tiny-output"):
            participant.ask(setup=kind)
            row = {"workload": "overhead-" + kind}
            for form in ("loop", "call"):
                times = [participant.ask(form=form, warm=2000, steps=20000)["ms"] * 1e3 for _ in range(PAIRS)]
                row[f"{form}_us"] = _r(statistics.median(times))
                row[f"{form}_min_us"] = _r(min(times))
            rows.append(row)
    finally:
        participant.end()
    return rows


def threads(maker, names):
    """How many times the calls of one thread that as many threads as there are cores make of one function,
    which writes nothing, each call on its own thread alone; and as many processes with a function each, which
    share nothing but the machine. Rounds of all three."""
    count = len(maker.cores)
    # Else a call takes the other cores, too, where it finds them free.
    processes = [maker.start("threads=1") for _ in range(count)]

    def per_call(participant, n=1):
        return participant.ask(threads=n, steps=300000)["ms"] * 1e3

    try:
        for participant in processes:
            participant.ask(setup="reading")
            participant.ask(threads=count, steps=5000)
        taken = []
        with concurrent.futures.ThreadPoolExecutor(count) as asking:
            for _ in range(PAIRS):
                alone, together = per_call(processes[0]), per_call(processes[0], count)
                apart = statistics.mean(asking.map(per_call, processes)) / count
                taken.append((alone, together, apart))
    finally:
        for participant in processes:
            participant.end()
    alone, together, apart = (_r(statistics.median(t[k] for t in taken)) for k in range(3))
    return [{"workload": f"threads-{count}", "one_us": alone, "all_us": together, "apart_us": apart,
             "speedup": _r(statistics.median(t[0] / t[1] for t in taken)),
             "speedup_apart": _r(statistics.median(t[0] / t[2] for t in taken))}]


def compile_times(maker, names):
    """Seconds to compile with an empty cache, and milliseconds with a full one in a new process."""
    rows = []
    for name in ("c128", "d"):
        cold, warm, runs = [], [], 0
        for _ in range(PAIRS):
            with tempfile.TemporaryDirectory() as folder:
                for times in (cold, warm):
                    subject, facts = maker.steps(name, flags="cache_dir=" + folder)
                    times.append(facts["compile_s"])
                    runs = max(runs, facts["compiler_runs"])
                    subject.participant.end()
        rows.append({"workload": "compile-" + name, "cold_s": _r(statistics.median(cold)),
                     "cold_min_s": _r(min(cold)), "warm_ms": _r(statistics.median(warm) * 1e3),
                     "warm_min_ms": _r(min(warm) * 1e3), "compiler_runs": runs})
    return rows


def storage(maker, names):
    """The time of a step from bytes over that from float32, the median of alternating pairs; and whether the
    loss after ten steps is the same to the bit."""
    rows = []
    for name in names:
        subjects = [maker.steps(name, kind)[0] for kind in ("uint8", "float32")]
        try:
            losses = [s.participant.ask(form="loop", warm=0, steps=10)["loss"] for s in subjects]
            for subject in subjects:
                subject.probe()
            pairs = [[subject.measure(maker.seconds) for subject in subjects] for _ in range(PAIRS + 2)]
        finally:
            for subject in subjects:
                subject.participant.end()
        rows.append({"workload": "storage-" + name, "uint8_ms": _r(statistics.median(p[0] for p in pairs)),
                     "float32_ms": _r(statistics.median(p[1] for p in pairs)),
                     "ratio": _r(statistics.median(p[0] / p[1] for p in pairs)),
                     "same_loss": int(losses[0] == losses[1])})
        rounds.note(f"(storage {name}) {rows[-1]['ratio']:.3f}")
    return rows


def few_bits(maker, names):
    """The time of a step that normalises images kept in few bits over that of a step from float32 images
    that were normalised before; the median of the rounds' ratios. The latter is there twice, which tells the
    noise: what nine of ten rounds of one over the other stay within, up or down."""
    rows = []
    for name in names:
        kinds = ["normalised", *BYTES, "again"]
        subjects = [maker.steps(name, "normalised" if kind == "again" else kind)[0] for kind in kinds]
        times = {kind: [] for kind in kinds}
        try:
            for subject in subjects:
                subject.probe()
            for number in range(BYTES_ROUNDS):
                turn = number % len(kinds)
                for k in [*range(turn, len(kinds)), *range(turn)]:
                    times[kinds[k]].append(subjects[k].measure(maker.seconds))
        finally:
            for subject in subjects:
                subject.participant.end()
        row = {"workload": "bytes-" + name, "normalised_ms": _r(statistics.median(times["normalised"])),
               "rounds": BYTES_ROUNDS}
        for kind in BYTES:
            row[kind + "_ratio"] = _r(statistics.median(
                few / wide for few, wide in zip(times[kind], times["normalised"])))
        row["of_uint8"] = {
            kind: _r(statistics.median(few / byte for few, byte in zip(times[kind], times["uint8"])))
            for kind in BYTES[1:]}
        noises = [max(a / b, b / a) for a, b in zip(times["again"], times["normalised"])]
        row["noise"] = _r(against.quantile(noises, against.SHARE_WITHIN_NOISE))
        rows.append(row)
        ratios = ", ".join(f"{kind} {row[kind + '_ratio']:.3f}" for kind in BYTES)
        rounds.note(f"(bytes {name}) {ratios}, noise {row['noise']:.3f}")
    return rows


def clipping(maker, names):
    """The time of a step of (d) whose gradients are clipped to a global norm over that of a step whose are
    not, the median of alternating pairs."""
    subjects = [maker.steps("d", clip=limit)[0] for limit in (0, 1)]
    try:
        for subject in subjects:
            subject.probe()
        pairs = []
        for number in range(CLIP_ROUNDS):
            times = [subject.measure(maker.seconds) for subject in subjects[::1 if number % 2 else -1]]
            pairs.append(times if number % 2 else times[::-1])
    finally:
        for subject in subjects:
            subject.participant.end()
    return [{"workload": "clip-d", "plain_ms": _r(statistics.median(p[0] for p in pairs)),
             "clipped_ms": _r(statistics.median(p[1] for p in pairs)),
             "ratio": _r(statistics.median(p[1] / p[0] for p in pairs))}]


MEASURE = {"overhead": overhead, "threads": threads, "compile": compile_times, "storage": storage,
           "bytes": few_bits, "clip": clipping}


def _r(value):
    return float(f"{value:.4g}")
