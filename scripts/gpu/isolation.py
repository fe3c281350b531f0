"""After a fault: the case again, alone, with launches that are waited for, then under memcheck with line
information.

A fault of a GPU ends the device for its process, and is told by whoever waits next, so by itself it names no
kernel.
"""

import glob
import os
import re

from gpu import commands

STICKY = "not usable any more"
# The names of the errors that CUDA repeats from then on: what programs of ours say that have no executor.
FINAL = re.compile(
    r"cudaError(IllegalAddress|LaunchTimeout|Assert|HardwareStackError|IllegalInstruction|MisalignedAddress|"
    r"InvalidAddressSpace|InvalidPc|LaunchFailure|ECCUncorrectable|Unknown)\b"
)
ALONE = ("launches=wait",)
LINES = ("debug_lines=on",)
COMPARED = "launches=compare"
LAUNCH = re.compile(
    r"\bkernel (?P<kernel>\S+) of (?P<function>[^()]+?) \(phase (?P<phase>\d+) of|"
    r"\bkernel (?P<ending>\S+) \(\d+ blocks of \d+ threads\), which ends a step of "
    r"(?P<loop>.+?)(?= fails: |$)|"
    r"\bthe (?P<call>library's .+?|copy|graph of .+?),? of (?P<owner>[^,;]+), which computes"
)
# `...; the fault is of this launch or of one of those before it that nobody waited for: 3 others, then
# k_12 phase 1 of train (dot at net.cpp:3), a copy; ...`
UNWAITED = re.compile(
    r"the fault is of (?:this|one)\b.*? that nobody waited for: (?:\d+ others, then )?(.*?)(?:; |$)"
)
PLACE = re.compile(r"[^\s,;()]+:\d+")
# What launches=compare finds: `..., which computes dot at net.cpp:12: of "dot" float32 [8], element 3 is 4 on
# device cuda, and 2 when the emulator repeats the launch; 1 of 8 elements differ`.
DIFFERENCE = re.compile(
    r": of (?P<buffer>.+), element (?P<element>\d+) is (?P<got>\S+) on device \S+, and (?P<expected>\S+) "
    r"(?:when the emulator repeats the launch|by plain loops).*; "
    r"(?P<differ>\d+) of (?P<count>\d+) elements differ"
)


def kind_of(ended):
    """crash, hang, sticky, or None: the program said by itself what is wrong."""
    if ended.kind in ("crash", "hang"):
        return ended.kind
    return "sticky" if not ended.passed and is_sticky(ended.text) else None


def is_sticky(text):
    """Whether a text tells of a fault that ended the device for its process."""
    return STICKY in text or bool(FINAL.search(text))


def sticky_sentence(text):
    """The line that tells the fault."""
    return next((line.strip()[:600] for line in text.splitlines() if is_sticky(line)), "")


def facts_of(text):
    """Kernel, phase and the user's lines that the errors of launches name; they read
    `kernel K of F (phase 1 of 2, 18 blocks of 256 threads), which computes dot at net.cpp:12`, or of those
    that the loop itself adds `kernel K (1 blocks of 256 threads), which ends a step of F`."""
    told = [line.strip() for line in text.splitlines() if LAUNCH.search(line) or is_sticky(line)]
    told = [line for line in told if DIFFERENCE.search(line)] or told
    # Those that name a launch say more than those that name functions, and the last word more than a warning.
    told.sort(key=lambda line: (bool(LAUNCH.search(line)), is_sticky(line)))
    if not told:
        return {}
    best = told[-1]
    facts = {"message": best[:2000]}
    launch = LAUNCH.search(best)
    if launch:
        facts["function"] = launch["function"] or launch["loop"] or launch["owner"]
        if launch["kernel"]:
            facts.update(kernel=launch["kernel"], phase=int(launch["phase"]))
        elif launch["ending"]:
            facts["kernel"] = launch["ending"]
        elif launch["call"].startswith("library's "):
            facts["kernel"] = launch["call"]
    lines = re.findall(r"\bat ([^\s,;()]+:\d+)", best)
    if lines:
        facts["lines"] = list(dict.fromkeys(lines))
    difference = DIFFERENCE.search(best)
    if difference:
        facts.update(buffer=difference["buffer"], got=difference["got"], expected=difference["expected"])
        facts.update({name: int(difference[name]) for name in ("element", "differ", "count")})
    return facts


def suspects_of(text):
    """Of an error that nobody waited for at once: the launches that may have caused it. CUDA returns the
    fault of a kernel from whatever is called later, so the launch that is refused need not be the culprit."""
    best = facts_of(text)
    told = UNWAITED.search(best.get("message", ""))
    listed = re.split(r",\s+(?![^()]*\))", told[1]) if told else []
    found = []
    if best.get("kernel"):
        found.append({"launch": best["kernel"], "kernel": best["kernel"], "lines": best.get("lines", [])})
        if told:  # of its sentence: those of the others stand behind
            found[0]["lines"] = PLACE.findall(best["message"][: best["message"].find(told[0])])
    for launch in listed:
        kernel = re.match(r"(?:kernel )?(k_\w+|bitale_\w+)", launch)
        name = kernel[1] if kernel else None
        if not any(name and name == known["kernel"] for known in found):
            found.append(
                {"launch": launch.split(" (")[0], "kernel": name, "lines": PLACE.findall(launch)}
            )
    return found[:20]


def memcheck_facts(text):
    """What compute-sanitizer says of the first error: its sentences, and where."""
    said = [line[9:].strip() for line in text.splitlines() if line.startswith("=========")]
    said = [
        line
        for line in said
        if line and not line.startswith(("COMPUTE-SANITIZER", "Saved host", "Host Frame"))
    ]
    facts = {"summary": next((line for line in said if "SUMMARY" in line), ""), "first": said[:12]}
    at = re.search(r"\bat (\w+)\S*\+0x[0-9a-f]+(?: in (\S+:\d+))?", "\n".join(said))
    if at:
        facts["kernel"] = at[1]
        if at[2]:
            facts["line"] = at[2]
    return facts


def why_under_sanitizer(ended, found):
    """The tool's first finding; where it found nothing, how the program failed by itself."""
    if found["first"] and not re.search(r"SUMMARY: 0 errors", found["summary"]):
        return found["first"][0]
    own = [
        line.strip() for line in ended.text.splitlines() if line.strip() and not line.startswith("=========")
    ]
    return (
        f"no finding, but the program fails ({ended.how}): {own[-1][:400] if own else 'it printed nothing'}"
    )


def sanitizer_command(tool, what, command):
    return [tool, "--tool", what, "--error-exitcode", "99", "--print-limit", "20", *command]


def investigate(visit, case, command, kind, ended, flags=(), extra=None):
    """Runs a failed case alone and adds what that tells to the faults; its number there.

    A third of the part's time for the first try and half of the rest for the second: other cases want some,
    too.
    """
    fault = {
        "part": visit.part["part"],
        "case": case,
        "kind": kind,
        "how": ended.how,
        "kernel": None,
        "phase": None,
        "lines": [],
        "suspects": [],
        "message": sticky_sentence(ended.text),
        "alone": "",
        "memcheck": "",
    }
    if kind == "sticky":
        # Which launch it was is known once somebody has waited for each.
        told = facts_of(ended.text)
        fault.update({name: told[name] for name in ("message", "function") if name in told})
        fault["suspects"] = suspects_of(ended.text)
    left = visit.left()
    passes = False
    if left > 5:
        alone = commands.run(
            command,
            min(20 if kind == "hang" else 60, max(5, left / 3)),
            visit.environment((*flags, *ALONE), dict(extra or {}, BITALE_DEBUG="2")),
            visit.options.temporary,
        )
        passes = alone.passed
        fault["alone"] = "passes alone with launches=wait" if passes else alone.how
        fault["alone_text"] = visit.results.text(case + ".alone.txt", alone.text)
        if not passes:
            fault.update({name: value for name, value in facts_of(alone.text).items() if value})
    else:
        fault["alone"] = "not tried: out of time"
    if kind == "hang":
        fault["memcheck"] = "not tried: memcheck finds accesses, not hangs"
    else:
        # What passes when launches are waited for, and so are no graphs, is looked at as it failed.
        fault["memcheck"] = memcheck(visit, case, command, (*flags, *(() if passes else ALONE)), extra)
    if isinstance(fault["memcheck"], dict):
        fault["kernel"] = fault["kernel"] or fault["memcheck"].get("kernel")
        fault["lines"] = fault["lines"] or fault["memcheck"].get("lines", [])
    return visit.results.fault(fault)


def compare(visit, case, command, ended):
    """Which launch of a wrong case is wrong: the fault's number and a sentence, or None and why it stays
    unknown.

    Each launch is repeated on the host, which takes long: a minute, or what the part has left.
    """
    left = visit.left() - 5
    if left < 5:
        return None, "not compared launch by launch: out of time"
    alone = commands.run(
        command,
        min(60 * visit.scale, left),
        visit.environment((COMPARED,)),
        visit.options.temporary,
    )
    text = visit.results.text(case + ".compared.txt", alone.text)
    facts = facts_of(alone.text)
    if "buffer" not in facts:
        # Wrong for the host's compiler likewise, or wrong only where launches are graphs or overlap.
        return None, (
            f"no launch differs with {COMPARED}" if alone.kind is None else f"{COMPARED}: {alone.how}"
        )
    fault = {
        "part": visit.part["part"],
        "case": case,
        "kind": "wrong",
        "how": ended.how,
        "kernel": None,
        "phase": None,
        "lines": [],
        "message": "",
        "alone": alone.how,
        "alone_text": text,
        "memcheck": "not tried: no access is at fault",
        **facts,
    }
    return visit.results.fault(fault), f"{fault['kernel']} is wrong in {fault['buffer']}"


def memcheck(visit, case, command, flags, extra):
    """The case under compute-sanitizer's memcheck with lines of the generated text, or why not."""
    if not visit.real():
        return f"not tried: compute-sanitizer needs a GPU; this visit is to {visit.where()}"
    tool = visit.tool("compute-sanitizer")
    if not tool:
        return "not tried: compute-sanitizer is not installed"
    left = visit.left()
    if left < 10:
        return "not tried: out of time"
    dumped = visit.scratch(".dump")
    ended = commands.run(
        sanitizer_command(tool, "memcheck", command),
        min(90, left / 2),
        visit.environment((*flags, *LINES), dict(extra or {}, BITALE_DUMP=dumped)),
        visit.options.temporary,
    )
    found = memcheck_facts(ended.text)
    if "line" in found:
        found.update(quoted(dumped, found["line"], found["kernel"]))
    waits = "launches=wait" in flags
    return dict(
        found,
        launches="waited for one by one" if waits else "as in the case that failed",
        how=ended.how,
        text=visit.results.text(case + ".memcheck.txt", ended.text),
    )


AROUND = 4  # lines before and behind the one that is quoted
WIDEST = 200


def quoted(folder, place, kernel):
    """Lines of the dumped CUDA text around `NAME.cu:14`, and the user's lines that they compute; nothing
    where no dumped text has this kernel."""
    number = int(place.rpartition(":")[2])
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*", "*.cu"))):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read().split("\n")
        starts = [k for k, line in enumerate(text, 1) if re.search(rf"\b{re.escape(kernel)}\(", line)]
        if not starts or number > len(text):
            continue
        above = [line for line in text[max(starts[0] - 1, 0) : number] if line.lstrip().startswith("//")]
        first, last = max(1, number - AROUND), min(len(text), number + AROUND)
        lines = list(dict.fromkeys(PLACE.findall(above[-1]))) if above else []
        return {
            "quoted": [f"{k}: {text[k - 1][:WIDEST]}" for k in range(first, last + 1)],
            "computes": above[-1].strip()[:WIDEST] if above else "",
            **({"lines": lines[:20]} if lines else {}),
        }
    return {}
