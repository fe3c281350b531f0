"""What programs do without on a machine: decided by what fails once more, alone and under the same
conditions, and is right with a flag, twice. A slow start, or a failure that does not come again, decides
nothing."""

from gpu.visit import LADDERS, Skip

TRIES = 2  # that a flag has to be right in, where there is time


def attempt(visit, name, command, seconds, flags=()):
    """right, or how it is not; None where the time does not suffice to say."""
    try:
        entry, ended = visit.command(name, command, seconds, flags=flags, investigate=False)
    except Skip:
        return None
    if entry["state"] == "skipped":
        return None
    return "right" if entry["state"] == "passed" else ended.how


def cure(visit, name, command, flag, seconds):
    """What a case does with a flag, up to the first failure; an empty list where there was no time."""
    said = []
    while len(said) < TRIES:
        how = attempt(visit, f"{name}, {flag}", command, seconds, (flag,))
        if how is None:
            break
        said.append(how)
        if how != "right":
            break
    return said


def cures(said):
    return bool(said) and set(said) == {"right"}


def often(said):
    return f"{len(said)} times" if len(said) == TRIES else "once, and there was no time for another try"


def settle(visit, flag, why, witness, said):
    """Programs run with a flag from here on, if it cures."""
    if cures(said):
        visit.fall_back(flag, f"{why}; with it {witness} is right {often(said)}")


def after_probe(visit, name, flag, entry, again, witness, seconds=60):
    """After a probe that failed: `again()` runs it once more, and what a step does with the flag decides.

    `witness` has a step's name and command: the probe itself uses what the flag leaves out, whatever the
    flag.
    """
    if entry is None or entry["state"] != "failed":
        return
    why = f"{name} did not pass: {entry.get('why') or entry.get('status', '')}"[:300]
    try:
        repeated = again()
    except Skip as stop:
        repeated = {"state": "skipped", "why": str(stop)}
    how = "passes" if repeated["state"] == "passed" else repeated.get("why") or repeated["state"]
    tell(visit, entry, again=how[:300])
    if repeated["state"] != "failed":
        meaning = "it passes" if repeated["state"] == "passed" else "not known whether it does"
        visit.results.note("reduced", f"nothing by {flag}, though {why}: once more and alone, {meaning}")
        return
    step, command = witness()
    said = cure(visit, step, command, flag, seconds)
    tell(visit, entry, cured={flag: said})
    if cures(said):
        settle(visit, flag, f"{why}, twice", step, said)
    else:
        what = ", ".join(said) or "out of time"
        visit.results.note("reduced", f"nothing by {flag}, though {why}, twice: with it {step}: {what}")


def tell(visit, entry, **values):
    visit.results.tell(entry, **values)
    if "fault" in entry:
        visit.results.tell(visit.results.data["faults"][entry["fault"]], **values)


def descend(visit, name, command, entry, kind, before, seconds=60):
    """After a step that ended in a fault: what it does once more, and with the flags that leave more out,
    up to the first that cures it. `before` is what programs ran with then."""
    with_now = list(visit.results.data["fallbacks"])
    how = attempt(visit, f"{name}, again", command, seconds)
    said = {"again": how or "out of time"}
    tell(visit, entry, again=said["again"])
    if how == "right" and with_now != before:
        said["again"] = f"right with {', '.join(with_now)}"
    if how is None or how == "right":
        return said
    tried = {}
    for flag in (flag for ladder in LADDERS for flag in ladder):
        if not visit.leaves_out_more(flag):
            continue
        tried[flag] = cure(visit, name, command, flag, seconds)
        if not tried[flag]:
            break
        said[flag] = ", then ".join(dict.fromkeys(tried[flag]))
        if cures(tried[flag]):
            settle(visit, flag, f"{name} ends in a fault ({kind}) without it, twice", "it", tried[flag])
            break
    tell(visit, entry, cured=tried)
    return said
