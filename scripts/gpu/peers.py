"""PyTorch and JAX on the same steps, where the machine's python3 has them."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

from gpu import commands, facts
from gpu.visit import LEAST, Skip
from gpu.workloads import workloads

FRAMEWORKS = {"torch": "torch_gpu.py", "jax": "jax_gpu.py"}
# Should time run out: the forms that are likely the best of a step come first, for every step, and nothing is
# compiled before it is timed next. A round: what is compiled ahead of it, on all cores, and what is timed. A
# graph of what is compiled is of the same code.
ROUNDS = [
    ({"jax": ("scan",)}, [("jax", "scan"), ("torch", "graph")]),
    ({"torch": ("compile",), "jax": ("jit",)}, [("torch", "compile graph")]),
    ({}, [("torch", "eager"), ("jax", "jit"), ("torch", "compile")]),
]
ORDER = ("b128", "c8", "d", "e64", "a", "b20", "c128", "e")  # those that differ most come first
A_FORM = 30  # seconds
A_COMPILED_FORM = 60
COMPILE = "compile"
PROCESSES = 8  # that compile ahead, each some of the steps: an import takes as long as a step


def python_with(visit, module):
    """A python3 that imports the module, and what that said."""
    said = "no python3 on PATH"
    for name in ("python3", "python"):
        path = shutil.which(name)
        if path:
            left = visit.left()
            if left < LEAST:
                return None, "out of time"
            ended = commands.run([path, "-c", f"import {module}; print({module}.__version__)"], min(60, left))
            if ended.passed:
                return path, ended.text.strip().splitlines()[-1]
            if ended.kind == "limit":
                return None, f"import {module} did not end: {ended.how}"
            lines = ended.text.strip().splitlines()
            said = lines[-1] if lines else ended.how
    return None, said


def peers(visit):
    """Round by round: what a framework has to compile, then each form of a step by itself."""
    pythons = {name: python_with(visit, name) for name in FRAMEWORKS}
    for name, (path, said) in pythons.items():
        if not path:
            visit.skip(name, said)
    pythons = {name: path for name, (path, _) in pythons.items() if path}
    names = [name for name in ORDER if name in workloads(visit)]
    found, ready = {}, set()
    for ahead, forms in ROUNDS:
        own = {framework: ahead[framework] for framework in ahead if framework in pythons}
        ready |= compile_ahead(visit, pythons, own, names)
        for name in names:
            for framework, form in forms:
                if framework not in pythons:
                    continue
                if COMPILE in form and framework not in ready:
                    visit.skip(f"{framework} {name}: {form}", "no time to compile ahead")
                else:
                    found[framework, form, name] = one(visit, pythons[framework], framework, form, name)
    rows = [
        [f"{framework}, {form}", *(found.get((framework, form, name)) for name in names)]
        for _, forms in ROUNDS
        for framework, form in forms
    ]
    visit.part["table"] = [["us a step", *names], [row for row in rows if any(row[1:])]]


def caches(visit):
    """Where the frameworks keep what they compiled, for later visits too: beside our kernels."""
    return {
        "JAX_COMPILATION_CACHE_DIR": os.path.join(visit.options.cache, "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(visit.options.cache, "torch"),
    }


def command_of(visit, python, framework, forms, names, seconds):
    return [
        python,
        os.path.join(visit.options.root, "benchmarks", "peers", FRAMEWORKS[framework]),
        *(word for name in names for word in ("--workload", name)),
        "--seconds",
        str(seconds),
        *(word for form in forms for word in ("--form", form)),
    ]


def compile_ahead(visit, pythons, ahead, names):
    """Fills the frameworks' own caches of compiled code on all cores, so that the timed processes find it
    there; the frameworks for which there was time."""
    if not ahead or visit.left() < A_COMPILED_FORM:
        return set()

    def one_of(framework, group):
        limit = min(2 * A_COMPILED_FORM, visit.left() / 2)  # the rest of the time is for times
        command = command_of(visit, pythons[framework], framework, ahead[framework], group, limit)
        command.append("--warm")
        ended = commands.run(command, limit, visit.environment((), caches(visit)), visit.options.temporary)
        said = f"{' '.join(group)}: {ended.seconds:.0f} s" + ("" if ended.passed else f", {ended.how}")
        if not ended.passed:
            visit.results.text(f"{framework}.{group[0]}.ahead.txt", ended.text)
        return framework, said

    many = PROCESSES // len(ahead)
    groups = [names[k::many] for k in range(many) if names[k::many]]
    jobs = [(framework, group) for group in groups for framework in ahead]
    with ThreadPoolExecutor(max(2, min(PROCESSES, len(os.sched_getaffinity(0)) // 2))) as pool:
        said = list(pool.map(lambda job: one_of(*job), jobs))
    for framework, forms in ahead.items():
        words = "; ".join(words for name, words in said if name == framework)
        visit.results.log(f"{'peers':>12}  {framework} compiled ahead for {', '.join(forms)}: {words}")
    return set(ahead)


def one(visit, python, framework, form, name):
    """Runs a framework's form of a step and adds the entry; its time."""
    path = visit.scratch(".json")
    label = f"{framework} {name}: {form}"
    seconds = A_COMPILED_FORM if COMPILE in form else A_FORM
    command = command_of(visit, python, framework, [form], [name], seconds) + ["--json", path]
    try:
        entry, _ = visit.command(label, command, seconds + 10, extra=caches(visit), isolate=False)
    except Skip as why:
        visit.skip(label, why)
        return None
    entry["result"] = facts.read_json(path)
    item = entry["result"].get("items", {}).get(form, {})
    if item.get("error"):
        entry["why"] = f"{form}: {item['error']}"
    visit.add(entry)
    return item.get("us")
