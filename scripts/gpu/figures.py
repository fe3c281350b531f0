"""The tables of docs/gpu.md, from the results of visits: what a GPU can do at most, steps beside those of
peers, and launches beside their predictions."""

import re

from gpu import table

CEILINGS = {
    "copy": ("copy of 268 MB, bytes read and written", "{:.0f} GB/s"),
    "fma": ("fused multiply-adds of float32", "{:.1f} TFLOP/s"),
    "launch": ("a launch, of many that nobody waits for", "{:.2f} us"),
    "graph_node": ("a node more of a graph", "{:.2f} us"),
    "while_turn": ("a turn of a WHILE node", "{:.2f} us"),
}
PEERS = (("jax", "scan"), ("jax", "jit"), ("torch", "graph"), ("torch", "compile graph"))
NAMES = {"jax": "JAX", "torch": "PyTorch"}
STEP = re.compile(r"  +\d+\. (\S+)  (.*)")
LAUNCH = re.compile(r"     launch(?: \d+)?: .*; predicted ([\d.]+) us")


def entries(files, part):
    """The entries of a part, of the last file that has any that passed."""
    for data in reversed(files):
        found = [entry for entry in table.entries(data, part) if entry.get("state") == "passed"]
        if found:
            return found
    return []


def items(entry):
    return entry.get("result", {}).get("items", {})


def ceilings(files):
    found = next((data["ceilings"] for data in reversed(files) if data.get("ceilings")), {})
    lines = [[what, unit.format(found[name])] for name, (what, unit) in CEILINGS.items() if name in found]
    return table.rows(["ceiling", "measured"], lines) if lines else ""


def us(value):
    return None if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def steps(files):
    """Each step by us and by peers; the last column is our time over that of the fastest peer."""
    peers = {}
    for entry in entries(files, "peers"):
        framework, name, form = re.match(r"(\w+) (\w+): (.*)", entry["name"]).groups()
        peers[framework, form, name] = items(entry).get(form, {}).get("us")
    forms = [peer for peer in PEERS if any(peers.get((*peer, name)) for _, _, name in peers)]
    lines = []
    for entry in entries(files, "times"):
        name, what = entry["name"].split(": ", 1)
        ours = items(entry).get("loop", {}).get("us")
        theirs = [peers.get((*peer, name)) for peer in forms]
        best = min((each for each in theirs if each), default=None)
        lines.append(
            [
                f"`{name}`: {what}",
                us(ours),
                us(items(entry).get("calls", {}).get("us")),
                *map(us, theirs),
                f"{ours / best:.2f}" if ours and best else None,
            ]
        )
    header = ["us a step", "loop", "calls", *(f"{NAMES[framework]}, {form}" for framework, form in forms)]
    return table.rows([*header, "loop / fastest peer"], lines) if lines else ""


def launches(entry):
    """(first operation, number of launches, predicted us, measured us) of each generated kernel."""
    found = []
    for line in items(entry).get("report", {}).get("text", "").splitlines():
        step, launch = STEP.match(line), LAUNCH.match(line)
        if step:
            found.append([*step.groups(), 0, 0.0])
        elif launch and found:
            found[-1][2] += 1
            found[-1][3] += float(launch[1])
    rows = items(entry).get("profile", {}).get("rows", [])
    if [row.get("name") for row in rows] != [name for name, *_ in found]:
        return []  # the profile is of another plan
    return [
        (what.split(" + ")[0].split(" (")[0], count, predicted, row["us"])
        for (_, what, count, predicted), row in zip(found, rows)
        if count
    ]


def predictions(files):
    """The generated kernels of each step together, and the three whose predictions are furthest off."""
    lines = []
    for entry in entries(files, "times"):
        kernels = launches(entry)
        if not kernels:
            continue
        predicted, measured = sum(each[2] for each in kernels), sum(each[3] for each in kernels)
        worst = sorted(kernels, key=lambda each: each[2] / each[3])[:3]
        lines.append(
            [
                f"`{entry['name'].split(':')[0]}`",
                sum(each[1] for each in kernels),
                us(predicted),
                us(measured),
                f"{measured / predicted:.1f}",
                "; ".join(f"{what} {us(took)} ({took / said:.1f})" for what, _, said, took in worst),
            ]
        )
    header = ["step", "launches", "predicted, us", "measured, us", "ratio", "furthest off: us (ratio)"]
    return table.rows(header, lines) if lines else ""


def markdown(files):
    return "\n".join(text for text in (ceilings(files), steps(files), predictions(files)) if text)
