"""What a machine is and has, and in one line each what is missing."""

import json
import os
import platform
import re
import shutil
import sys

from gpu import commands

FIELDS = [
    "name",
    "driver_version",
    "compute_cap",
    "memory.total",
    "power.limit",
    "clocks.max.sm",
    "clocks.max.memory",
]
TOOLS = {
    "compute-sanitizer": "no memcheck after a fault, no sanitizers in --second",
    "ncu": "no counters in --second",
}
HOST_COMPILERS = ("c++", "g++", "clang++")


def older(one, other):
    """Whether version `one`, as 2.31, is older than `other`."""
    numbers = lambda text: [int(number) for number in re.findall(r"\d+", text)]
    return numbers(one) < numbers(other)


def why_not_starting(ended, packed):
    """One sentence on programs that do not start."""
    here = platform.libc_ver()[1] or "an unknown version"
    wanted = sorted(
        set(re.findall(r"GLIBC_(2\.\d+)' not found", ended.text)), key=lambda v: int(v.split(".")[1])
    )
    if wanted:
        return f"libc is too old: the programs want glibc {wanted[-1]}, this machine has {here}"
    needs = packed.get("needs_libc", "")
    if needs and platform.libc_ver()[1] and older(here, needs):
        return f"libc is too old: the programs want glibc {needs}, this machine has {here}"
    return f"the programs do not start here: {ended.how} {ended.text.strip()[-300:]}".rstrip()


def machine(options):
    """Facts that every result is read with."""
    about = {
        "platform": f"{platform.system()} {release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "libc": " ".join(platform.libc_ver()),
        "python": sys.version.split()[0],
        "memory_gib": memory_gib(),
    }
    if shutil.which("nvidia-smi"):
        row = commands.output_of(
            ["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader"]
        ).split("\n")[0]
        values = [value.strip() for value in row.split(",")]
        about["gpu"] = dict(zip(FIELDS, values)) if len(values) == len(FIELDS) else row
    if shutil.which("nvcc"):
        about["nvcc"] = commands.output_of(["nvcc", "--version"]).split("\n")[-1]
    compiler = next((name for name in HOST_COMPILERS if shutil.which(name)), None)
    about["host_compiler"] = commands.output_of([compiler, "--version"]).split("\n")[0] if compiler else None
    about["packed"] = options.packed
    if os.path.exists(os.path.join(options.root, ".git")):
        about["commit"] = commands.commit_of(options.root)
    return about


def release():
    """The kernel's version, without what its builder added."""
    return re.match(r"[\d.]*", platform.release())[0]


def places(root, temporary):
    """Words for this machine's folders in what a visit leaves behind."""
    words = {root: ".", temporary: "TMPDIR", os.path.expanduser("~"): "~"}
    if sys.prefix != sys.base_prefix:
        words[sys.prefix] = "VENV"
    return words


def memory_gib():
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return round(int(re.search(r"MemTotal:\s*(\d+)", file.read())[1]) / 2**20, 1)
    except (OSError, TypeError):
        return None


def device_problem(info, device):
    """Why bitale-info says that the device is not there, or None."""
    found = re.search(rf"^  {device} +not available: (.*)", info, re.MULTILINE)
    return found[1] if found else None


def missing_libraries(info):
    """The lines of bitale-info on what is absent."""
    return [f"{name}: {why}" for name, why in re.findall(r"^  (\S+) +absent: (.*)", info, re.MULTILINE)]


def missing_here(visit, info, about):
    """One line for each thing that is not there, and what that means."""
    lines = missing_libraries(info) if visit.options.device == "cuda" else []
    if not visit.real():
        lines = [line for line in lines if not line.startswith("driver:")]
    if not about.get("host_compiler"):
        lines.append(
            "host compiler: none of "
            + ", ".join(HOST_COMPILERS)
            + "; the cpu device cannot compile, so steps are held "
            "against the device reference, at reduced shapes"
        )
    if not visit.real():
        return lines
    if "gpu" not in about:
        lines.append("nvidia-smi: not on PATH; clocks and power of the GPU stay unknown")
    lines += [f"{tool}: not found; {means}" for tool, means in TOOLS.items() if not visit.tool(tool)]
    if not os.path.isdir(visit.options.data):
        lines.append(f"MNIST: no folder {visit.options.data}; images are made up")
    return lines


def newest_first_visit(paths, device, where):
    """Of files of results, the one of the newest first visit to the same kind of device that timed steps."""
    found = []
    for path in paths:
        data = read_json(path)
        if not isinstance(data, dict) or data.get("visit") != "first":
            continue
        timed = any(part["part"] == "times" and part["state"] != "skipped" for part in data.get("parts", []))
        if timed and (data.get("device"), data.get("where")) == (device, where):
            found.append((data.get("date", ""), path))
    return max(found)[1] if found else None


def passed_before(paths, device, where):
    """Of the first visits to a kind of device, when each case of `core` last passed, by name."""
    found = {}
    for path in paths:
        data = read_json(path)
        if not isinstance(data, dict) or data.get("visit") != "first":
            continue
        if (data.get("device"), data.get("where")) != (device, where):
            continue
        for part in data.get("parts", []):
            for entry in part.get("entries", []) if part.get("part") == "core" else []:
                # One that ran out of time counts as passed if those of its cases that ran did.
                if entry.get("state") == "passed" and not entry.get("not_run"):
                    found[entry["name"]] = max(found.get(entry["name"], ""), data.get("date", ""))
    return found


def read_json(path):
    """A program's JSON, or an empty one: it may have ended before it wrote any."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}
