"""A visit to a GPU machine: its parts in order, the time that each may take, and what its programs run
with."""

import os
import shutil
import threading
import time
import traceback

from gpu import commands, isolation

LEAST = 4  # seconds below which nothing is begun
CLOSING = 6  # seconds kept for writing what there is
QUICK = 25  # seconds of a command with --quick
USUAL = 540  # seconds of a visit for which the parts' limits are meant; a longer one has longer parts


# Flags that leave something out: of each ladder programs run with one, and later ones leave out more.
LADDERS = (("graphs=step", "graphs=off"), ("disable=cudnn",))


class Skip(Exception):
    """Why a part or a case does not run."""


class Part:
    """A named part: what it answers, its limit in seconds, the function that runs it, and whether it needs a
    GPU."""

    def __init__(self, name, limit, run, answers, hardware=False, device=True):
        self.name, self.limit, self.run, self.answers = name, limit, run, answers
        self.hardware, self.device = hardware, device


class Visit:
    def __init__(self, options, results):
        self.options, self.results = options, results
        self.start = time.monotonic()
        self.scale = max(1.0, options.seconds / USUAL)
        self.end = self.start + options.seconds - CLOSING
        self.part_end = self.end
        self.part = None
        self.no_device = None  # why nothing can run on the device
        self.tools = {}
        self.facts = {}  # what later parts need of earlier ones
        self.counter = 0
        self.lock = threading.Lock()

    # ---- time

    def left(self):
        return min(self.part_end, self.end) - time.monotonic()

    def run_parts(self, parts):
        """A part alone, but for the information, has all of the visit's time."""
        alone = [part for part in parts if part.name != "information"]
        for part in parts:
            left = self.end - time.monotonic()
            limit = max(0, left) if [part] == alone else min(part.limit * self.scale, max(0, left))
            self.part = self.results.begin(part.name, limit)
            self.part["answers"] = part.answers
            self.part_end = time.monotonic() + limit
            begin = time.monotonic()
            try:
                if left < LEAST:
                    raise Skip(f"out of time: {max(0, left):.0f} of {self.options.seconds} s are left")
                if part.device and self.no_device:
                    raise Skip(f"no device {self.options.device}: {self.no_device}")
                if part.hardware and not self.real():
                    raise Skip(f"needs a GPU; this visit is to {self.where()}")
                part.run(self)
            except Skip as why:
                self.skip(part.name, why)
            except Exception as problem:  # pylint: disable=broad-except
                # A mistake of this script's own loses one part, not the visit.
                self.results.text(f"{part.name}.traceback.txt", traceback.format_exc())
                self.add(
                    {
                        "name": part.name,
                        "state": "failed",
                        "why": f"gpu_check itself: {type(problem).__name__}: {problem}",
                    }
                )
            self.results.end(self.part, time.monotonic() - begin)

    # ---- what programs run with

    def real(self):
        return self.options.device == "cuda" and not self.options.emulated

    def where(self):
        emulated = self.options.emulated
        return f"the emulated libraries {emulated}" if emulated else f"device {self.options.device}"

    def environment(self, flags=(), extra=None, device=None):
        """Flags of ours go first: they are read in order, so the caller's win."""
        words = [f"device={device or self.options.device}"]
        if not any(flag.startswith("cache_dir=") for flag in flags):
            words.append(f"cache_dir={self.options.cache}")
        if self.options.emulated:
            words.append(
                f"cuda_home={os.path.join(self.options.build, 'emulated_cuda', self.options.emulated)}"
            )
        words += [*self.results.data["fallbacks"], *flags, os.environ.get("BITALE_FLAGS", "")]
        return dict(
            os.environ,
            BITALE_TEST_DEVICE=device or self.options.device,
            BITALE_DATA=self.options.data,
            BITALE_FLAGS=",".join(word for word in words if word),
            **(extra or {}),
        )

    def fall_back(self, flag, why):
        """From here on programs run with a flag, since what it leaves out does not work on this machine.
        Flags are read in order, so a second one of a ladder would undo the first: the lower one stays."""
        with self.results.lock:
            if not self.leaves_out_more(flag):
                return
            ladder = next((each for each in LADDERS if flag in each), (flag,))
            kept = [each for each in self.results.data["fallbacks"] if each not in ladder]
            self.results.data["fallbacks"] = [*kept, flag]
            self.results.note("reduced", f"{flag} from here on: {why}")

    def leaves_out_more(self, flag):
        """Whether a flag goes further down its ladder than what programs run with."""
        ladder = next((each for each in LADDERS if flag in each), (flag,))
        return not any(each in self.results.data["fallbacks"] for each in ladder[ladder.index(flag) :])

    def falls_back(self, start):
        """The flag with this start that programs run with, or None."""
        return next((flag for flag in self.results.data["fallbacks"] if flag.startswith(start)), None)

    def program(self, name):
        path = self.find_program(name)
        if not path:
            raise Skip(f"{self.options.build} has no program {name}")
        return path

    def find_program(self, name):
        for folder in ("", "tests", "examples", "benchmarks"):
            path = os.path.join(self.options.build, folder, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        return None

    def scratch(self, ending):
        """A file of this visit's temporary folder."""
        with self.lock:
            self.counter += 1
            return os.path.join(self.options.temporary, f"{self.counter}{ending}")

    def tool(self, name):
        """Where one of the vendor's tools is, or None."""
        if name not in self.tools:
            homes = [os.environ.get(variable, "") for variable in ("CUDA_HOME", "CUDA_PATH")] + [
                "/usr/local/cuda"
            ]
            folders = [os.path.join(home, "bin") for home in homes if home]
            nsight = "/opt/nvidia/nsight-compute"
            if os.path.isdir(nsight):
                folders += [
                    os.path.join(nsight, version) for version in sorted(os.listdir(nsight), reverse=True)
                ]
            self.tools[name] = shutil.which(name) or next(
                (
                    os.path.join(folder, name)
                    for folder in folders
                    if os.access(os.path.join(folder, name), os.X_OK)
                ),
                None,
            )
        return self.tools[name]

    # ---- cases

    def add(self, entry):
        self.results.add(self.part, entry)

    def command(
        self, name, command, seconds, flags=(), extra=None, device=None, isolate=True, investigate=True
    ):
        """Runs one command; its entry, not yet added, and how it ended. After a fault the case runs again
        alone. Without `isolate` no limit's end is a fault: tools that only watch, and frameworks, are
        slow."""
        left = self.left()
        if left < LEAST:
            raise Skip("out of time")
        own = min(QUICK, seconds) if self.options.quick else seconds * self.scale
        ended = commands.run(
            command,
            own if isolate else min(own, left),
            self.environment(flags, extra, device),
            self.options.temporary,
            most=left if isolate else None,
        )
        entry = {"name": name, "state": "passed" if ended.passed else "failed", "seconds": ended.seconds}
        if not ended.passed:
            entry.update(command=" ".join(command), status=ended.how, output=ended.text[-4000:])
            entry["text"] = self.results.text(name + ".txt", ended.text)
            if ended.kind == "limit":
                entry.update(state="skipped", why=f"out of time: {ended.how}")
            kind = isolation.kind_of(ended)
            if kind:
                entry["why"] = (
                    f"{kind}: {ended.how}" if kind != "sticky" else isolation.sticky_sentence(ended.text)
                )
            if kind and isolate and investigate and device is None:
                entry["fault"] = isolation.investigate(self, name, command, kind, ended, flags, extra)
        return entry, ended

    def skip(self, name, why):
        self.add({"name": name, "state": "skipped", "why": str(why)})
