"""PyTorch and JAX on the same steps, where the machine's python3 has them."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

from gpu import commands, facts
from gpu.visit import LEAST, Skip
from gpu.workloads import workloads

FRAMEWORKS = {"torch": "torch_gpu.py", "jax": "jax_gpu.py"}
# What compiles for long comes last, and the steps that differ most come first, should time run out.
ROUNDS = [("torch", ("eager", "graph")), ("jax", ("jit", "scan")), ("torch", ("compile", "compile graph"))]
ORDER = ("b128", "c8", "d", "e64", "a", "b20", "c128", "e")
A_FORM = 30  # seconds
A_COMPILED_FORM = 60
COMPILE = "compile"
AT_ONCE = 4  # compilations side by side, before any of them is timed


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
    """Each framework and workload is one process, and in it each form another."""
    pythons = {name: python_with(visit, name) for name in FRAMEWORKS}
    for name, (path, said) in pythons.items():
        if not path:
            visit.skip(name, said)
    names = [name for name in ORDER if name in workloads(visit)]
    found = {}
    for framework, forms in ROUNDS:
        if COMPILE in forms and pythons[framework][0]:
            compile_ahead(visit, pythons[framework][0], framework, names)
        for name in names if pythons[framework][0] else []:
            for form, us in one(visit, pythons[framework][0], framework, forms, name):
                found[framework, form, name] = us
    rows = [
        [f"{framework}, {form}", *(found.get((framework, form, name)) for name in names)]
        for framework, forms in ROUNDS
        for form in forms
    ]
    visit.part["table"] = [["us a step", *names], [row for row in rows if any(row[1:])]]


def command_of(visit, python, framework, forms, name, seconds):
    return [
        python,
        os.path.join(visit.options.root, "benchmarks", "peers", FRAMEWORKS[framework]),
        "--workload",
        name,
        "--seconds",
        str(seconds),
        *(word for form in forms for word in ("--form", form)),
    ]


def compile_ahead(visit, python, framework, names):
    """Fills the framework's own cache of compiled code on all cores, so that the timed process finds it
    there."""

    def one_of(name):
        left = visit.left()
        if left < A_COMPILED_FORM:
            return f"{name}: no time"
        command = command_of(visit, python, framework, [COMPILE], name, 2 * A_COMPILED_FORM) + ["--warm"]
        ended = commands.run(command, min(2 * A_COMPILED_FORM + 10, left), folder=visit.options.temporary)
        return f"{name}: {ended.seconds:.0f} s" + ("" if ended.passed else f", {ended.how}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(one_of, names))
    visit.results.log(f"{'peers':>12}  {framework} compiled ahead: {'; '.join(said)}")


def one(visit, python, framework, forms, name):
    """Runs a framework's forms of a step and adds the entry; their times."""
    path = visit.scratch(".json")
    label = f"{framework} {name}: {', '.join(forms)}"
    seconds = A_COMPILED_FORM if COMPILE in forms else A_FORM
    command = command_of(visit, python, framework, forms, name, seconds) + ["--json", path]
    try:
        entry, _ = visit.command(label, command, seconds * len(forms) + 10, isolate=False)
    except Skip as why:
        visit.skip(label, why)
        return []
    entry["result"] = facts.read_json(path)
    items = entry["result"].get("items", {})
    errors = [f"{form}: {item['error']}" for form, item in items.items() if item.get("error")]
    if errors:
        entry["why"] = "; ".join(errors)
    visit.add(entry)
    return [(form, item["us"]) for form, item in items.items() if "us" in item]
