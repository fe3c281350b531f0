"""What differs between the texts of two sides."""

import itertools
import json
import os
import re
import subprocess

PARTS = ("storage", "nests", "groups", "schedule")
# Planning times of one program vary by so much on a quiet machine.
SLOWER, AT_LEAST_MS = 1.3, 10


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def numbers_of(folder):
    text = read(os.path.join(folder, "numbers.txt"))
    return {name: float(value) for name, value in (line.split() for line in (text or "").splitlines())}


def kernels_of(folder):
    """(text without the kernel's number, path) of all, in order of their numbers."""
    folder = os.path.join(folder, "kernels")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    return [(re.sub(r"\bkernel\d+", "kernel", read(path)), path) for path in paths]


def without_equals(old, new):
    """What each list of kernels has alone."""
    rest = list(new)
    alone = []
    for kernel in old:
        equal = next((k for k, other in enumerate(rest) if other[0] == kernel[0]), None)
        if equal is None:
            alone.append(kernel)
        else:
            del rest[equal]
    return alone, rest


def change(name, old, new, unit=""):
    return f"{name} {old:,.0f} -> {new:,.0f}{unit}" if old != new else ""


def compare(old, new):
    """(labels, words) for one graph and target, of the folders of both."""
    errors = [read(os.path.join(folder, "error.txt")) for folder in (old, new)]
    if all(errors):
        return ["error"] if errors[0] != errors[1] else [], "neither builds: " + errors[1].splitlines()[0]
    if any(errors):
        which = "old" if errors[0] else "new"
        return ["error"], f"the {which} side does not build it: " + (errors[0] or errors[1]).splitlines()[0]
    labels = [part for part in PARTS
              if read(os.path.join(old, part + ".txt")) != read(os.path.join(new, part + ".txt"))]
    all_kernels = kernels_of(new)
    gone, come = without_equals(kernels_of(old), all_kernels)
    before, now = numbers_of(old), numbers_of(new)
    words = []
    if gone or come:
        labels.append("text")
        words.append(f"{len(come)} of {len(all_kernels)} kernels new")
    if read(os.path.join(old, "helpers.txt")) != read(os.path.join(new, "helpers.txt")):
        labels.append("helpers")
    words += [change("launches", before["launches"], now["launches"]),
              change("kernels", before["kernels"], now["kernels"]),
              change("text", before["text_bytes"], now["text_bytes"], " B"),
              change("arena", before["arena_bytes"], now["arena_bytes"], " B")]
    if before["arena_bytes"] != now["arena_bytes"] and "storage" not in labels:
        labels.append("arena")
    x, y = before["milliseconds"], now["milliseconds"]
    if max(x, y) > SLOWER * min(x, y) and abs(x - y) > AT_LEAST_MS:
        labels.append("time")
        words.append(f"planned in {x:.0f} -> {y:.0f} ms")
    return labels, ", ".join(w for w in words if w)


def folders(side):
    """{(target, graph)} of a side, and {graph: why} of those that it did not finish."""
    found, stopped = set(), {}
    for target in sorted(os.listdir(side)):
        if os.path.isdir(os.path.join(side, target)):
            for name in os.listdir(os.path.join(side, target)):
                if target == "stopped":
                    stopped[name.removesuffix(".txt")] = read(os.path.join(side, target, name)).strip()
                elif os.path.isdir(os.path.join(side, target, name)):
                    found.add((target, name))
    return found, stopped


def difference(old, new):
    """As diff -u shows it; None stands for no file."""
    names = [path or os.devnull for path in (old, new)]
    return subprocess.run(["diff", "-u", *names], capture_output=True, text=True).stdout


def write_difference(old, new, path):
    """All texts in full. Kernels that are the same but for their number are left out, the others go in pairs."""
    text = ""
    for name in ("error", *PARTS, "helpers"):
        pair = [os.path.join(folder, name + ".txt") for folder in (old, new)]
        text += difference(*(p if os.path.exists(p) else None for p in pair))
    gone, come = without_equals(kernels_of(old), kernels_of(new))
    for before, now in itertools.zip_longest(gone, come, fillvalue=("", None)):
        text += difference(before[1], now[1])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def total(side, pairs, name):
    return sum(numbers_of(os.path.join(side, *pair)).get(name, 0) for pair in pairs)


def report(old, new, out, only=""):
    """Prints a line for each graph, or for its targets where they differ, writes the same and all differences below `out`. 0: all alike."""
    lines, counts = [], {}
    (before, stopped_before), (now, stopped_now) = folders(old), folders(new)
    unable = {}
    for side, which in ((old, "OLD"), (new, "NEW")):
        run = json.loads(read(os.path.join(side, "run.json")))
        lines.append(f"{which}: {run['wish']} ({run['commit'][:10]})")
        for graph, why in sorted(run["unable"].items()):
            unable[graph] = f"{which} cannot express it: {why}"
    for stopped, which in ((stopped_before, "OLD"), (stopped_now, "NEW")):
        for graph, why in sorted(stopped.items()):
            unable.setdefault(graph, f"{which}: {why}")
    for graph, why in sorted(unable.items()):
        if only in graph:
            lines.append(f"{graph}: {why}")
    both = sorted(pair for pair in before & now if only in pair[1] and pair[1] not in unable)
    for pair in sorted(before ^ now):
        if only in pair[1] and pair[1] not in unable:
            lines.append(f"{pair[1]} {pair[0]}: only in {'OLD' if pair in before else 'NEW'}")
    different, said = 0, {}
    for target, graph in sorted(both, key=lambda pair: (pair[1], pair[0])):
        folder = os.path.join(target, graph)
        labels, words = compare(os.path.join(old, folder), os.path.join(new, folder))
        for label in labels or ["same"]:
            counts[label] = counts.get(label, 0) + 1
        path = os.path.join(out, "differences", target, graph + ".diff")
        if os.path.exists(path):
            os.unlink(path)
        if set(labels) - {"time"}:
            different += 1
            write_difference(os.path.join(old, folder), os.path.join(new, folder), path)
        words = f"{' '.join(labels) or 'same'}{': ' + words if words else ''}"
        said.setdefault(graph, {}).setdefault(words, []).append(target)
    targets = {target for target, _ in both}
    for graph, by_words in said.items():
        for words, those in by_words.items():
            where = "" if len(those) == len(targets) else " " + ", ".join(those)
            lines.append(f"{graph}{where}: {words}")
    lines.append("")
    for name, unit in (("launches", ""), ("kernels", ""), ("text_bytes", " B"), ("arena_bytes", " B"),
                       ("milliseconds", " ms")):
        x, y = total(old, both, name), total(new, both, name)
        lines.append(f"all {name.replace('_', ' ')}: {x:,.0f} -> {y:,.0f}{unit}"
                     + (f" ({(y / x - 1) * 100:+.1f} %)" if x and x != y else ""))
    lines.append(f"{len(both)} plans compared: "
                 + ", ".join(f"{count} {label}" for label, count in sorted(counts.items())))
    if different:
        lines.append(f"differences in full: {os.path.join(out, 'differences')}")
    text = "\n".join(lines) + "\n"
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "summary.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text, end="")
    return 1 if different or unable else 0
