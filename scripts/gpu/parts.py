"""The parts of the first visit: every network right before any of them fast."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from gpu import facts, fallbacks, isolation, peers, suite
from gpu.visit import Part, Skip
from gpu.workloads import WORKLOADS, workloads


def side_by_side(visit, jobs, of_cores=4, most=4):
    """Runs functions at once on a machine with cores for them, `of_cores` each, else one after another."""
    workers = max(1, min(most, len(os.sched_getaffinity(0)) // of_cores)) if visit.real() else 1
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


def reduced(visit, what):
    """The option of programs that lowers shapes and counts where there is no GPU; the JSON says so."""
    if visit.real():
        return []
    visit.results.note("reduced", f"{what}: --reduced, since this visit is to {visit.where()}")
    return ["--reduced"]


# ---- what a machine is and has


def information(visit):
    """Facts, what is missing, and whether there is a device at all."""
    about = facts.machine(visit.options)
    data = visit.results.data
    data["machine"] = about
    packed, here = visit.options.packed.get("commit"), about.get("commit")
    data["commit"] = packed or here
    if packed and here and packed != here:
        visit.results.note(
            "missing", f"same commit: the programs are of {packed[:12]}, the checkout is {here[:12]}"
        )
    entry, ended = visit.command("bitale-info", [visit.program("bitale-info")], 90, isolate=False)
    visit.results.text("bitale-info.txt", ended.text)
    problem = None
    if ended.kind in ("limit", "hang"):
        # A slow start says nothing of the device: the next part asks it.
        visit.results.note("missing", f"bitale-info: it did not end within {ended.seconds:.0f} s")
    elif not ended.passed:
        problem = facts.why_not_starting(ended, visit.options.packed)
        entry["why"] = problem
    else:
        info = ended.text.split("\n\nBITALE_FLAGS")[0]
        about["bitale"] = info.split("\n")
        problem = facts.device_problem(ended.text, visit.options.device)
        if problem:
            entry.update(state="failed", why=f"no device {visit.options.device}: {problem}")
        for line in facts.missing_here(visit, info, about):
            visit.results.note("missing", line)
    visit.no_device = problem
    if problem:
        visit.results.note("missing", f"device {visit.options.device}: {problem}")
    visit.facts["host_compiler"] = bool(about["host_compiler"])
    visit.add(entry)
    for line in data["missing"]:
        visit.results.log(f"{'missing':>12}  {line}")
    if not problem:
        try:
            probe(visit, "information")  # multiprocessors, memories and clocks, as CUDA tells them
        except Skip as why:
            visit.skip("information of the GPU", why)


# ---- one thing at a time


def probe(visit, *names, seconds=30, options=()):
    """One process a name: what one of them breaks says nothing of the others."""
    for name in names:
        try:
            entry = probe_once(visit, name, seconds, options)
        except Skip as why:
            visit.skip(name, why)
            continue
        visit.add(entry)


def probe_once(visit, name, seconds=30, options=(), investigate=True):
    """The entry of a name, not yet added."""
    path = visit.scratch(".json")
    command = [
        visit.program("gpu_probe"),
        *options,
        "--json",
        path,
        "--only",
        name,
        *reduced(visit, "gpu_probe"),
    ]
    entry, _ = visit.command(name, command, seconds, investigate=investigate)
    take_probe(visit, entry, facts.read_json(path), name)
    return entry


def take_probe(visit, entry, result, name):
    """What the program says of an item goes into its entry."""
    if "fault" in entry and result.get("launching"):
        visit.results.name_kernel(entry["fault"], result["launching"])
    item = result.get("items", {}).get(name)
    if not item:
        if entry["state"] == "passed":
            entry.update(state="failed", why=f"gpu_probe said nothing of {name}")
        return
    entry["result"] = item
    if item.get("state") == "skipped" and entry["state"] == "passed":
        entry["state"] = "skipped"
    said = item.get("error") or item.get("why")
    if said and "fault" not in entry:
        entry["why"] = said


def decide(visit, name, flag, workload):
    """Whether later parts do without what a probe found not to work."""
    entry = next((each for each in visit.part["entries"] if each["name"] == name), None)

    def again():
        return probe_once(visit, name, investigate=False)

    def witness():
        step = "a" if visit.options.quick else workload
        words = ("--only", "build", "--only", "check", *against(visit))
        return f"step {step}", steps_command(visit, step, visit.scratch(".json"), *words)

    try:
        fallbacks.after_probe(visit, name, flag, entry, again, witness)
    except Skip as why:
        visit.results.note("reduced", f"nothing by {flag}, though {name} did not pass, twice: {why}")


def kernel(visit):
    """One kernel."""
    probe(visit, "kernel")


def graph(visit):
    """One graph; where it fails again and again, later parts do without any."""
    probe(visit, "graph")
    decide(visit, "graph", "graphs=off", "a")


def while_node(visit):
    """One WHILE node; where it fails again and again, later parts launch one graph a step."""
    if visit.falls_back("graphs=off"):
        raise Skip("a WHILE node is part of a graph, and graph did not pass")
    probe(visit, "while")
    decide(visit, "while", "graphs=step", "a")


def libraries(visit):
    """One call of each library; where cuDNN's is a fault, and is one again, later parts generate their
    convolutions."""
    probe(visit, "cublaslt", "cudnn")
    faulty = [entry["name"] for entry in visit.part["entries"] if "fault" in entry]
    if "cudnn" in faulty:
        decide(visit, "cudnn", "disable=cudnn", "c8")
    if "cublaslt" in faulty:
        visit.results.note(
            "reduced", "nothing, though cublaslt ends in a fault: no flag leaves its products out on a GPU"
        )


def nan(visit):
    """NaN through both libraries and a generated kernel."""
    probe(visit, "nan")


CEILINGS = {"copy": "GB_s", "fma": "TFLOP_s", "launch": "us", "graph_node": "us", "while_turn": "us"}
# What a flag of this start leaves out: ceilings and files of tests that are about nothing else.
NEEDED = {
    "graph_node": "graphs=off",
    "while_turn": "graphs=",
    "[#graphs_test]~[slow]": "graphs=",
    "[#cudnn_test]~[slow]": "disable=cudnn",
}


def ceilings(visit):
    """What the machine can do at most, and what a launch costs."""
    for name in CEILINGS:
        flag = visit.falls_back(NEEDED.get(name, "no flag"))
        if flag:
            visit.skip(name, f"programs run with {flag}")
        else:
            probe(visit, name)
    found = {
        entry["name"]: entry["result"][CEILINGS[entry["name"]]]
        for entry in visit.part["entries"]
        if CEILINGS[entry["name"]] in entry.get("result", {})
    }
    by_size = [entry.get("result", {}).get("sizes", []) for entry in visit.part["entries"]]
    visit.results.data["ceilings"] = dict(found, copy_by_size=sum(by_size, []))
    visit.part["table"] = [
        ["ceiling", "value", "unit"],
        [[name, value, CEILINGS[name]] for name, value in found.items()],
    ]


# ---- the suite's core

CORE = [
    "test_cuda [#hardware_test]~[slow]",
    "test_cuda [#library_calls_test]~[slow]",
    "test_cuda [#nan_test]~[slow]",
    "test_cuda [#graphs_test]~[slow]",
    "test_numerics [#updates_test]~[slow]",
    "test_numerics [#layout_test]~[slow]",
    "test_numerics [#views_test]~[slow]",
    # What does not depend on this GPU comes last.
    "test_cuda [#cudnn_test]~[slow]",
    "test_cuda [#loading_test]~[slow]",
]
CORE_QUICK = ["test_cuda [#loading_test]~[slow]", "test_numerics [#updates_test]~[slow]"]


def in_turn(names, passed, seed):
    """Files that passed in no visit so far come first, then those whose pass is oldest; otherwise the seed
    decides, so that visits without the results of earlier ones reach different files, too."""
    drawn = sorted(names)
    random.Random(seed).shuffle(drawn)
    return sorted(drawn, key=lambda name: passed.get(name, ""))


def core(visit):
    """Hardware tests, graphs, chosen numerics; then, while there is time, the rest of the numerics."""
    chosen = list(CORE_QUICK if visit.options.quick else CORE)
    if visit.real():
        chosen.append("test_cuda [#cubins_test]~[slow]")  # asks NVIDIA's compiler for its machine code
        seed = os.environ.get("BITALE_TEST_SEED") or str(int(time.time()))
        visit.part["seed"] = seed
        visit.results.log(f"{'core':>12}  order of the other numerics by BITALE_TEST_SEED={seed}")
        rest = [
            f"test_numerics [#{name}]~[slow]"
            for name in suite.files_of(visit.program("test_numerics"))
            if f"test_numerics [#{name}]~[slow]" not in chosen
            and name not in ("same_bits_test", "arm64_test")
        ]
        passed = facts.passed_before(visit.options.known, visit.options.device, None)
        chosen += in_turn(rest, passed, seed)

    def one(program, tags):
        flag = visit.falls_back(NEEDED.get(tags, "no flag"))
        if flag:
            visit.skip(f"{program} {tags}", f"programs run with {flag}")
        else:
            suite.run_file(visit, program, tags, 150)

    # Nearly all of their time is that of NVRTC, on one core.
    side_by_side(visit, [lambda words=line.split(): one(*words) for line in chosen], of_cores=2, most=8)


# ---- the eight training steps


def steps_command(visit, name, path, *words, device=None):
    return [
        visit.program("gpu_steps"),
        "--workload",
        name,
        "--device",
        device or visit.options.device,
        "--json",
        path,
        *words,
    ]


def against(visit):
    """What losses and parameters are held against."""
    if visit.facts.get("host_compiler", True):
        return ["--check", "cpu", *reduced(visit, "gpu_steps --check")]
    visit.results.note("reduced", "gpu_steps: there is no host compiler, so --check reference --reduced")
    return ["--check", "reference", "--reduced"]


def take_steps(entry, path):
    """What gpu_steps says goes into its entry; its items by name."""
    entry["result"] = facts.read_json(path)
    items = entry["result"].get("items", {})
    said = next((f"{name}: {item['error']}" for name, item in items.items() if item.get("error")), "")
    if entry["state"] == "failed" and "fault" not in entry:
        entry["why"] = said or last_line(entry.get("output", ""))
    return items


SUSPECTS = ("graphs=off", "disable=cudnn")


def narrow(visit, name, command):
    """What a wrong step does without graphs, and with convolutions of our own: who is to blame."""
    said = {}
    for flag in SUSPECTS:
        try:
            entry, _ = visit.command(f"{name}, {flag}", command, 60, flags=(flag,), isolate=False)
        except Skip:
            break
        said[flag] = {"passed": "right", "failed": "wrong"}.get(entry["state"], entry["state"])
    return said


def largest_difference(check):
    """The parameter that differs most at any of the steps after which they were compared, and by how much."""
    found = [
        (after.get("difference", 0), each.get("name"))
        for each in check.get("parameters", [])
        for after in each.values()
        if isinstance(after, dict)
    ]
    by, name = max(found, default=(None, None))
    return name, by


def steps(visit):
    """Losses and parameters of every training step; once all are checked, what is to blame for wrong ones."""
    lines, bad = {}, []
    before = list(visit.results.data["fallbacks"])

    def one(name):
        path = visit.scratch(".json")
        command = steps_command(visit, name, path, "--only", "build", "--only", "check", *against(visit))
        case = f"{name}: {WORKLOADS[name]}"
        entry, ended = visit.command(case, command, 60)
        check = take_steps(entry, path).get("check", {})
        worst, by = largest_difference(check)
        bounds = ", ".join(f"{what} {bound:.2g}" for what, bound in check.get("bounds", {}).items())
        lines[name] = [
            name,
            entry["state"],
            check.get("against"),
            check.get("steps"),
            check.get("loss_difference"),
            worst,
            by,
            bounds,
        ]
        visit.add(entry)
        if "fault" in entry or check.get("state") == "failed":
            bad.append((name, command, entry, ended))

    def blame(name, command, entry, ended):
        if "fault" in entry:
            kind = visit.results.data["faults"][entry["fault"]]["kind"]
            said = fallbacks.descend(visit, name, command, entry, kind, before)
        else:
            said = narrow(visit, name, command)
        told = (f"{how} {'once more' if flag == 'again' else f'with {flag}'}" for flag, how in said.items())
        why = "; ".join([entry["why"], ", ".join(told)])
        visit.results.change(entry, narrowed=said, why=why)
        if "fault" not in entry:
            number, told = isolation.compare(visit, entry["name"], [*command, "--steps", "2"], ended)
            found = {} if number is None else {"fault": number}
            visit.results.change(entry, why=f"{why}; {told}", **found)

    def guarded(name):
        try:
            one(name)
        except Skip as why:
            visit.skip(f"{name}: {WORKLOADS[name]}", why)

    side_by_side(visit, [lambda name=name: guarded(name) for name in workloads(visit)])
    # One after another: what is found out of one is what the others run with. Then the wrong ones.
    for each in [each for each in bad if "fault" in each[2]]:
        blame(*each)
    side_by_side(visit, [lambda each=each: blame(*each) for each in bad if "fault" not in each[2]])
    visit.part["table"] = [
        ["step", "state", "against", "steps", "losses differ by", "worst parameter", "differs by", "bounds"],
        [lines[name] for name in workloads(visit) if name in lines],
    ]


def last_line(text):
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return said[-1][:600] if said else ""


def timed(visit, label, name, *words, device=None, seconds=60, flags=()):
    """Runs gpu_steps for its times and adds the entry; its items, or nothing where no time is left."""
    path = visit.scratch(".json")
    command = steps_command(visit, name, path, *words, *reduced(visit, "gpu_steps"), device=device)
    try:
        entry, _ = visit.command(label, command, seconds, flags, device=device)
    except Skip as why:
        visit.skip(label, why)
        return {}
    items = take_steps(entry, path)
    if entry["state"] == "passed" and "us" in items.get("loop", {}):
        entry["why"] = f"{items['loop']['us']:.1f} us a step"
    visit.add(entry)
    return items


def times(visit):
    """Microseconds a step, and where they go."""
    lines = []
    for name in workloads(visit):
        items = timed(visit, f"{name}: {WORKLOADS[name]}", name, "--profile")
        rows = items.get("profile", {}).get("rows", [])
        worst = max(rows, key=lambda row: row.get("us", 0), default={})
        lines.append(
            [
                name,
                items.get("loop", {}).get("us"),
                items.get("calls", {}).get("us"),
                items.get("report", {}).get("nodes"),
                items.get("build", {}).get("compile_seconds"),
                worst.get("name"),
                worst.get("us"),
            ]
        )
    visit.part["table"] = [
        ["step", "us a step, loop", "us a step, calls", "nodes", "compile s", "slowest kernel", "us"],
        lines,
    ]


FIRST = [
    Part("information", 120, information, "what the machine is, and what is missing", device=False),
    Part("kernel", 60, kernel, "does one kernel run, and rightly?"),
    Part("graph", 110, graph, "is a captured graph launched?"),
    Part("while", 110, while_node, "does a WHILE node turn, so that a loop is one launch?"),
    Part("libraries", 150, libraries, "is one call of cuBLASLt and of cuDNN right, and by which engine?"),
    Part("nan", 40, nan, "does NaN survive relu in both libraries and in generated code?"),
    Part("core", 130, core, "do kernels, graphs and libraries give the CPU's numbers?"),
    Part("steps", 240, steps, "do all eight training steps give the CPU's losses and parameters?"),
    Part("ceilings", 60, ceilings, "what is the most that this GPU can do?"),
    Part("times", 150, times, "how long is a step, and which kernels take it?"),
    Part("peers", 280, peers.peers, "how long do PyTorch and JAX take for the same step?", hardware=True),
]
