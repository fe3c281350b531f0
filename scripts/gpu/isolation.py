"""After a fault: the case again, alone, with launches that are waited for, then under memcheck with line
information.

A fault of a GPU ends the device for its process, and is told by whoever waits next, so by itself it names no
kernel.
"""

import re

from gpu import commands

STICKY = "not usable any more"
# The names of the errors that CUDA repeats from then on: what programs of ours say that have no executor.
FINAL = re.compile(
    r"cudaError(IllegalAddress|LaunchTimeout|Assert|HardwareStackError|IllegalInstruction|MisalignedAddress|"
    r"InvalidAddressSpace|InvalidPc|LaunchFailure|ECCUncorrectable|Unknown)\b"
)
ALONE = ("launches=wait",)
LINES = ("launches=wait", "debug_lines=on")
COMPARED = "launches=compare"
LAUNCH = re.compile(
    r"\bkernel (?P<kernel>\S+) of (?P<function>[^()]+?) \(phase (?P<phase>\d+) of|"
    r"\bkernel (?P<ending>\S+) \(\d+ blocks of \d+ threads\), which ends a step of "
    r"(?P<loop>.+?)(?= fails: |$)|"
    r"\bthe (?P<call>library's .+?|copy|graph of .+?),? of (?P<owner>[^,;]+), which computes"
)
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
        "message": sticky_sentence(ended.text),
        "alone": "",
        "memcheck": "",
    }
    fault.update(facts_of(ended.text) if kind == "sticky" else {})
    left = visit.left()
    if left > 5:
        alone = commands.run(
            command,
            min(20 if kind == "hang" else 60, max(5, left / 3)),
            visit.environment((*flags, *ALONE), dict(extra or {}, BITALE_DEBUG="2")),
            visit.options.temporary,
        )
        fault["alone"] = "passes alone with launches=wait" if alone.passed else alone.how
        fault["alone_text"] = visit.results.text(case + ".alone.txt", alone.text)
        if not alone.passed:
            fault.update({name: value for name, value in facts_of(alone.text).items() if value})
    else:
        fault["alone"] = "not tried: out of time"
    fault["memcheck"] = (
        "not tried: memcheck finds accesses, not hangs"
        if kind == "hang"
        else memcheck(visit, case, command, flags, extra)
    )
    if isinstance(fault["memcheck"], dict) and not fault["kernel"]:
        fault["kernel"] = fault["memcheck"].get("kernel")
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
    ended = commands.run(
        sanitizer_command(tool, "memcheck", command),
        min(90, left / 2),
        visit.environment((*flags, *LINES), extra),
        visit.options.temporary,
    )
    return dict(
        memcheck_facts(ended.text), how=ended.how, text=visit.results.text(case + ".memcheck.txt", ended.text)
    )
