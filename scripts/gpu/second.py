"""The parts of the second visit: why the slow kernels are slow, and what else can be wrong."""

import csv
import os
import re

from gpu import facts, isolation, parts
from gpu.visit import Part, Skip
from gpu.workloads import QUICK, workloads

SECTIONS = [
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "Occupancy",
    "LaunchStats",
    "WarpStateStats",
    "SchedulerStats",
    "InstructionStats",
]


def information(visit):
    """What the machine is; what the first visit had to leave out on it is left out here too."""
    parts.information(visit)
    for flag in facts.read_json(visit.options.after).get("fallbacks", []) if visit.options.after else []:
        visit.fall_back(flag, f"as in {visit.options.after}")


# ---- counters


def copy_rate(bytes_, ceilings):
    """GB/s of a copy that touches as many bytes, so that what lies in the L2 cache has the cache's
    ceiling."""
    by_size = sorted(ceilings.get("copy_by_size", []), key=lambda each: each["bytes"])
    fitting = [each["GB_s"] for each in by_size if 2 * each["bytes"] >= bytes_]  # read and written
    return fitting[0] if fitting else ceilings.get("copy", 0)


def limit_us(row, ceilings):
    """The least time that a row's bytes and operations take, by the ceilings; never below one node of a
    graph."""
    rate = copy_rate(row.get("bytes", 0), ceilings)
    by_bytes = row.get("bytes", 0) / (rate * 1e3) if rate else 0
    by_flops = row.get("flops", 0) / (ceilings["fma"] * 1e6) if ceilings.get("fma") else 0
    return max(by_bytes, by_flops, ceilings.get("graph_node", 0.0))


def profiles(first):
    """(workload, row) of every generated kernel that the first visit timed."""
    for part in first.get("parts", []):
        for entry in part["entries"] if part["part"] == "times" else []:
            result = entry.get("result", {})
            items = result.get("items", {})
            kernels = items.get("build", {}).get("kernels", [])
            for k, row in enumerate(items.get("profile", {}).get("rows", [])):
                kernel = kernels[k] if k < len(kernels) else {}
                if row.get("us") and kernel.get("phases"):
                    yield result.get("workload"), dict(
                        row, entries=[phase["entry"] for phase in kernel["phases"]]
                    )


def furthest(first, count=5):
    """The generated kernels of the first visit that lose most of a step against their bytes and
    operations."""
    found = {}
    for workload, row in profiles(first):
        least = limit_us(row, first.get("ceilings", {}))
        ratio, lost = row["us"] / least if least > 0 else 0, row["us"] - least
        if lost > found.get(row["name"], {"lost_us": 0})["lost_us"]:
            found[row["name"]] = {
                "kernel": row["name"],
                "workload": workload,
                "us": row["us"],
                "least_us": least,
                "ratio": ratio,
                "lost_us": lost,
                "entries": row["entries"],
                "where": row.get("where", []),
            }
    return sorted(found.values(), key=lambda each: -each["lost_us"])[:count]


def read_counters(text):
    """(metric, unit, value) of ncu's `--csv --page details`."""
    lines = text.splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    return [
        {
            "kernel": row.get("Kernel Name", ""),
            "section": row["Section Name"],
            "metric": row["Metric Name"],
            "unit": row["Metric Unit"],
            "value": row["Metric Value"],
        }
        for row in csv.DictReader(lines[start:])
        if row.get("Metric Name")
    ]


def counters(visit):
    """ncu on five kernels."""
    if not visit.options.after:
        raise Skip("no results of a first visit; name them with --after FILE")
    worst = furthest(facts.read_json(visit.options.after))
    if not worst:
        raise Skip(f"{visit.options.after} has no profiles of kernels")
    visit.part["furthest"] = worst
    visit.part["table"] = [
        ["kernel", "step", "us", "least us", "times"],
        [[each["kernel"], each["workload"], each["us"], each["least_us"], each["ratio"]] for each in worst],
    ]
    if not visit.real():
        raise Skip(f"ncu needs a GPU; this visit is to {visit.where()}")
    tool = visit.tool("ncu")
    if not tool:
        raise Skip("ncu is not installed")
    sections = [word for section in SECTIONS for word in ("--section", section)]
    for each in worst:
        path = visit.scratch(".json")
        program = parts.steps_command(
            visit, each["workload"], path, "--only", "calls", "--rounds", "1", "--graphs", "off"
        )
        names = "|".join(re.escape(name) for name in each["entries"])
        # Each phase once; the first call is another than those that follow.
        command = [
            tool,
            "--csv",
            "--page",
            "details",
            # Else ncu locks the clocks to their base, and its times are not those of the first visit.
            "--clock-control",
            "none",
            "--kernel-name",
            f"regex:^({names})$",
            "--launch-skip",
            str(len(each["entries"])),
            "--launch-count",
            str(len(each["entries"])),
            *sections,
            *program,
        ]
        try:
            entry, ended = visit.command(
                f"{each['kernel']} of {each['workload']}", command, 60, isolate=False
            )
        except Skip as why:
            visit.skip(each["kernel"], why)
            continue
        entry["counters"] = read_counters(ended.text)
        entry["text"] = visit.results.text(each["kernel"] + ".ncu.txt", ended.text)
        if not entry["counters"]:
            problem = re.search(r"==ERROR== (.*)", ended.text)
            entry.update(state="failed", why=problem[1] if problem else "ncu counted nothing")
        visit.add(entry)


# ---- libraries, launches

WITH_CONVOLUTIONS = ("d", "e64", "e")
ENGINES = ("d", "e64", "e", "b128")


def engines(visit):
    """Every engine that a library proposes for a step's calls: exact ones first, then those with tensor
    cores."""
    names = ENGINES[-1:] if visit.options.quick else ENGINES
    parts.probe(
        visit,
        *(name + precision for precision in ("", " tf32") for name in names),
        seconds=60,
        options=("--engines",),
    )
    visit.part["table"] = [
        ["step", "call", "engines", "qualify", "Bitale's choice", "us", "fastest", "us"],
        [
            [entry["name"], *engines_line(call)]
            for entry in visit.part["entries"]
            for call in entry.get("result", {}).get("calls", [])
        ],
    ]


def engines_line(call):
    """Of one call: how many engines there are, which Bitale takes, and which is fastest of those that may be
    taken."""
    proposed = call.get("engines", [])
    timed = [each for each in proposed if each.get("state") == "passed" and "us" in each]
    own = next((each for each in timed if each.get("chosen")), {})
    best = min(timed, key=lambda each: each["us"], default={})
    return [
        call.get("call"),
        len(proposed),
        sum(bool(each.get("qualifies")) for each in proposed),
        call.get("chosen"),
        own.get("us"),
        best.get("engine"),
        best.get("us"),
    ]


def libraries(visit):
    """Calls of both libraries by themselves, and steps whose convolutions are generated instead."""
    parts.probe(visit, "cublaslt", "cudnn", seconds=60)
    lines = []
    for name in QUICK if visit.options.quick else WITH_CONVOLUTIONS:
        items = parts.timed(
            visit,
            f"{name}, disable=cudnn",
            name,
            "--only",
            "loop",
            "--only",
            "report",
            flags=("disable=cudnn",),
        )
        lines.append([name, items.get("loop", {}).get("us")])
    visit.part["table"] = [["step", "disable=cudnn: us, loop"], lines]


def graphs(visit):
    """The same steps with one graph a step, and without graphs."""
    lines = []
    for name in workloads(visit):
        columns = []
        for most in ("step", "off"):
            if not visit.leaves_out_more(f"graphs={most}") and not visit.falls_back(f"graphs={most}"):
                visit.skip(f"{name}, graphs={most}", f"programs run with {visit.falls_back('graphs=')}")
                columns += [None, None]
                continue
            items = parts.timed(
                visit, f"{name}, graphs={most}", name, "--graphs", most, "--only", "loop", "--only", "calls"
            )
            columns += [items.get("loop", {}).get("us"), items.get("calls", {}).get("us")]
        lines.append([name, *columns])
    visit.part["table"] = [["step", "graphs=step: us, loop", "calls", "graphs=off: us, loop", "calls"], lines]


# ---- sanitizers

NETWORKS = "the networks train on the tested device as on the CPU"


def sanitizers(visit):
    """compute-sanitizer's four tools over one kernel, a graph and the networks."""
    if not visit.real():
        raise Skip(f"compute-sanitizer needs a GPU; this visit is to {visit.where()}")
    tool = visit.tool("compute-sanitizer")
    if not tool:
        raise Skip("compute-sanitizer is not installed")

    def one(what):
        chosen = {
            "kernel and graph": [
                visit.program("gpu_probe"),
                "--json",
                visit.scratch(".json"),
                "--reduced",
                "--only",
                "kernel",
                "--only",
                "graph",
            ],
            "networks": [visit.program("test_cuda"), NETWORKS],
        }
        for name, command in chosen.items():
            try:
                entry, ended = visit.command(
                    f"{what}: {name}",
                    isolation.sanitizer_command(tool, what, command),
                    120,
                    flags=("debug_lines=on",),
                    isolate=False,
                )
            except Skip as why:
                visit.skip(f"{what}: {name}", why)
                continue
            entry["found"] = isolation.memcheck_facts(ended.text)
            if entry["state"] == "failed":
                entry["why"] = isolation.why_under_sanitizer(ended, entry["found"])
            visit.add(entry)

    parts.side_by_side(
        visit, [lambda what=what: one(what) for what in ("memcheck", "racecheck", "initcheck", "synccheck")]
    )


# ---- the machine's cores

CPU_WORKLOADS = ("c128", "b128", "d", "e")


def cpu(visit):
    """Steps on the machine's own cores."""
    if not visit.facts.get("host_compiler", True):
        raise Skip("there is no host compiler")
    cores = len(os.sched_getaffinity(0))
    counts = [threads for threads in (1, 2, 4, 8, 16) if threads <= cores]
    lines = []
    for name in QUICK if visit.options.quick else CPU_WORKLOADS:
        lines.append([name])
        for threads in counts:
            items = parts.timed(
                visit,
                f"{name}, {threads} threads",
                name,
                "--threads",
                str(threads),
                "--only",
                "loop",
                device="cpu",
                seconds=30,
            )
            lines[-1].append(items.get("loop", {}).get("us"))
    visit.part["table"] = [["us a step, loop", *(f"{threads} threads" for threads in counts)], lines]


SECOND = [
    Part("information", 120, information, "what the machine is, and what is missing", device=False),
    Part(
        "counters", 150, counters, "why are the five kernels furthest from their bytes and operations slow?"
    ),
    Part("engines", 130, engines, "is an engine faster than the one that Bitale takes of each library?"),
    Part("libraries", 70, libraries, "are calls of libraries right, and our own convolutions faster?"),
    Part("graphs", 110, graphs, "what do graphs save?"),
    Part("sanitizers", 160, sanitizers, "do memcheck, racecheck, initcheck and synccheck find anything?"),
    Part("cpu", 60, cpu, "how do our steps on a CPU use many cores?", device=False),
]
