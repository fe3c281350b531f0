"""Runs the benchmarks: python3 benchmarks/driver [options]; see docs/benchmarks.md."""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from driver import (against, busy, extras, floors, machine, participants, peers, rounds, shapes,  # noqa: E402
                    tables)

HERE = pathlib.Path(__file__).resolve().parent.parent
EXTRAS = [*extras.NAMES, "busy"]
LONG = ("g", "h")  # groups of so many rows that a quick run has them only when it is asked to
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bitale" / "bench"


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measures training steps and kernels of Bitale and of its peers; "
                                          "docs/benchmarks.md explains workloads and results.")
    parser.add_argument("--quick", action="store_true", help="three short rounds of the training steps")
    parser.add_argument("--only", metavar="W", default="",
                        help="workloads or groups, joined by commas: c128, a, g, busy")
    parser.add_argument("--json", metavar="FILE",
                        help="write the results as JSON, and a table with the ending .md beside it")
    parser.add_argument("--save", action="store_true",
                        help="write both into benchmarks/results/<date>-<machine class>[-W]")
    parser.add_argument("--ours", action="store_true", help="measure Bitale alone, without peers")
    parser.add_argument("--against", metavar="BUILD",
                        help="with --ours: alternate with another build, a checkout or a build folder")
    parser.add_argument("--prepare", action="store_true",
                        help="measure nothing: let every participant compile, for the next run")
    parser.add_argument("--threads", type=int, metavar="N", default=len(os.sched_getaffinity(0)),
                        help="threads of every participant; default: %(default)s, all cores")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of rounds")
    parser.add_argument("--build-limit", type=float, metavar="SECONDS", default=30,
                        help="time to build a row of (h); a row that takes longer is reported; default: 30")
    parser.add_argument("--programs", metavar="DIR",
                        default=str(HERE.parent / "build" / "release" / "benchmarks"),
                        help="the folder of the benchmark programs; default: build/release/benchmarks")
    options = parser.parse_args()
    if options.against and not options.ours:
        parser.error("--against compares two builds of ours: add --ours")
    if options.against and options.prepare:
        parser.error("--prepare is for peers, and --against has none")
    return options


def chosen(description, options):
    """(workloads and kernels, what is measured of us alone)"""
    wanted = [w for w in options.only.split(",") if w]
    groups = {name: entry["group"] for name, entry in description["workloads"].items()}
    groups |= {name: "g" for name in description["kernels"]}
    groups |= {name: "h" for name in description["shapes"]}
    unknown = [w for w in wanted if w not in groups and w not in groups.values() and w not in EXTRAS]
    if unknown:
        sys.exit(f"unknown workload {', '.join(unknown)}; there are {', '.join([*groups, *EXTRAS])}")
    if options.against:
        return compared(wanted, groups, options.quick)
    if not wanted:
        return ([name for name, group in groups.items() if not options.quick or group not in LONG],
                [] if options.quick else EXTRAS)
    return ([name for name, group in groups.items() if name in wanted or group in wanted],
            [name for name in EXTRAS if name in wanted])


def compared(wanted, groups, quick):
    """With --against: overhead is that of two workloads, and the other extras compare by themselves."""
    alone = [name for name in EXTRAS if name in wanted and name != "overhead"]
    if alone:
        sys.exit(f"--against does not measure {', '.join(alone)}")
    names = [name for name, group in groups.items()
             if name in wanted or group in wanted or (not wanted and (not quick or group not in LONG))]
    return names + (list(against.TINY) if not wanted or "overhead" in wanted else []), []


def peers_folder():
    return pathlib.Path(os.environ.get("BITALE_PEERS") or CACHE.parent / "peers-venv")


def start_peer(options, name, cores, log):
    """A process of a peer, or nothing where it is not installed."""
    python = peers_folder() / "bin" / "python"
    cache = {"BITALE_BENCH_CACHE": str(CACHE), "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "torch")}
    program, environment = peers.processes(options.threads)[name]
    command = ([str(python), str(HERE / "peers" / program)] if program.endswith(".py") else
               [str(pathlib.Path(options.programs) / program)])
    if not pathlib.Path(command[0]).exists():
        return None
    return participants.Participant(command, environment | cache, cores, log)


def start_peers(options, wanted, cores, log):
    """The wanted processes, as far as they answer, and the versions of the peers."""
    started, versions = {}, {}
    for name in peers.processes(options.threads):
        participant = start_peer(options, name, cores, log) if name in wanted else None
        if not participant:
            continue
        try:
            versions[name.split("-")[0]] = participant.ask(version=True)["version"]
            started[name] = participant
        except participants.Failed as error:
            rounds.note(f"{name}: {error}")
            participant.end()
    return started, versions


def memory_file(versions, threads):
    """Probes of earlier runs with the same versions and threads."""
    key = "-".join(f"{name}{version}" for name, version in sorted(versions.items())) or "none"
    return CACHE / f"forms-{key}-{threads}threads.json"


def main():
    options = arguments()
    description = json.loads((HERE / "networks.json").read_text())
    for file in ("kernels.json", "shapes.json"):
        description |= json.loads((HERE / file).read_text())
    names, extra_names = chosen(description, options)
    cores = set(sorted(os.sched_getaffinity(0))[:options.threads])
    CACHE.mkdir(parents=True, exist_ok=True)
    programs = pathlib.Path(options.programs)
    other = None
    if options.against:
        try:
            other = against.programs_of(options.against, {against.program_for(n, description) for n in names})
        except against.Refused as error:
            sys.exit(str(error))
    with open(CACHE / "log.txt", "w") as log:
        roof_process = participants.Participant([str(programs / "bench_roofs")], {}, cores, log)
        ours = Ours(programs, options.threads, cores, log)
        everyone = [roof_process]
        try:
            if options.against:
                result = run_against(options, description, names, roof_process, ours, other)
                print(tables.comparison(result))
                return
            compared_names = names + (busy_names(description, names) if "busy" in extra_names else [])
            forms = {} if options.ours else {name: forms_of(description, name) for name in compared_names}
            wanted = {form.process for of_one in forms.values() for form in of_one}
            started, versions = start_peers(options, wanted, cores, log)
            everyone += started.values()
            peer = lambda name: start_peer(options, name, cores, log)
            result = run(options, description, names, extra_names, forms, roof_process, ours, started,
                         versions, peer)
        finally:
            for participant in everyone + ours.all:
                participant.end()
    print(tables.markdown(result))


def forms_of(description, name):
    if name in description["shapes"]:
        return peers.shape_forms(description["shapes"][name])
    kernel = description["kernels"].get(name)
    return peers.kernel_forms(kernel) if kernel else peers.forms(description, name)


def run(options, description, names, extra_names, forms, roof_process, ours, started, versions, peer):
    """peer(name): another process of that peer."""
    facts = machine.description()
    roofs = machine.Roofs(roof_process, options.threads, 0.02 if options.quick or options.ours else 0.1)
    if options.prepare:
        rounds.prepare(forms, started)
        sys.exit()
    memory = memory_file(versions, options.threads)
    remembered = json.loads(memory.read_text()) if memory.exists() else {}
    seconds = 0.1 if options.quick or options.ours else 0.3
    count = options.rounds or (3 if options.quick else 5)
    session = rounds.Session(roofs, started, seconds, count, remembered)
    result = heading(options, facts, versions | {"bitale": revision(HERE)}) | {"ours": []}
    outcomes = {}
    for name in names:
        rounds.note(f"({name})")
        kernel, shape = name in description["kernels"], description["shapes"].get(name)
        if shape:
            outcomes[name] = shapes.measure(session, lambda: ours.start("cache=off", "bench_shapes"), peer, name,
                                            shape, forms.get(name, []), options.quick,
                                            options.build_limit)
        else:
            outcomes[name] = rounds.measure(session, ours("bench_kernels" if kernel else "bench_steps"),
                                            name, forms.get(name, []), options.quick, kernel)
        if started:
            memory.write_text(json.dumps(session.memory))
        finish(options, description, outcomes, roofs, versions, result)
    for name in extra_names:
        steps = [n for n in names if n in description["workloads"]] or list(description["workloads"])
        if name == "busy":
            for beside in busy_rows(options, description, session, ours, names, forms):
                result["ours"] += beside
                finish(options, description, outcomes, roofs, versions, result)
            continue
        result["ours"] += extras.MEASURE[name](extras.Maker(ours.start, seconds, ours.cores), steps)
        finish(options, description, outcomes, roofs, versions, result)
    roofs.measure()
    finish(options, description, outcomes, roofs, versions, result)
    return result


def busy_names(description, names):
    """The steps of --only, or else the usual ones."""
    return [n for n in names if n in description["workloads"]] or busy.WORKLOADS


def busy_rows(options, description, session, ours, names, forms):
    session.rounds = options.rounds or (busy.ROUNDS_QUICK if options.quick else busy.ROUNDS)
    for name in busy_names(description, names):
        rounds.note(f"(busy {name})")
        yield busy.measure(session, ours("bench_steps"), name, forms.get(name, []), len(ours.cores),
                           options.quick)


def heading(options, facts, versions):
    return {"date": datetime.date.today().isoformat(), "class": machine.machine_class(facts),
            "machine": facts, "threads": options.threads, "quick": options.quick, "versions": versions,
            "roofs": {}, "rows": []}


def run_against(options, description, names, roof_process, ours, other):
    """Rows, and the files after each workload."""
    roofs = machine.Roofs(roof_process, options.threads, 0.02)
    count = options.rounds or (against.ROUNDS_QUICK if options.quick else against.ROUNDS)
    session = rounds.Session(roofs, {}, 0.1, count, {})
    result = heading(options, machine.description(), {"new": revision(HERE), "old": revision(other)})
    for name in names:
        rounds.note(f"({name})")
        program = against.program_for(name, description)
        start = lambda side: ours.start("", program, None if side == "new" else other)
        limit_s = options.build_limit if program == "bench_shapes" else 600
        result["rows"] += against.measure(session, start, name, facts_of(description, name), program,
                                          limit_s)
        result["roofs"] = roofs.as_json()
        write(options, result, tables.document_of_comparison(result), "-against")
    return result


def facts_of(description, name):
    if name in against.TINY:
        return {"title": against.TINY[name], "batch": 1}
    for group in ("kernels", "shapes"):
        if name in description[group]:
            return {"op": description[group][name]["op"]}
    return {key: description["workloads"][name][key] for key in ("title", "batch")}


def finish(options, description, outcomes, roofs, versions, result):
    """Rows and files, after each workload: a run that is ended early leaves what it has."""
    result["roofs"] = roofs.as_json()
    result["rows"] = []
    for name, outcome in outcomes.items():
        kernel, shape = description["kernels"].get(name), description["shapes"].get(name)
        if shape:
            floor = shapes.floor_ms(shape, roofs)
            facts = shapes.facts(shape, outcome, outcomes)
        elif kernel:
            floor = floors.kernel_floor_ms(kernel, roofs)
            facts = kernel_facts(kernel, outcome.ours.median())
        else:
            floor = floors.floor_ms(description, name, roofs)
            facts = facts_of(description, name)
        result["rows"] += tables.rows_of(name, facts, outcome, floor, versions)
    write(options, result, tables.document(result))


def write(options, result, document, kind=""):
    files = [pathlib.Path(options.json)] if options.json else []
    if options.save:
        part = "-" + options.only.replace(",", "+") if options.only else ""
        files.append(HERE / "results" / f"{result['date']}-{result['class']}{part}{kind}.json")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
        file.with_suffix(".md").write_text(document)


class Ours:
    """Our processes: one of each program for the run, and others on demand."""

    def __init__(self, programs, threads, cores, log):
        self.cores = cores
        self._programs, self._threads, self._log = programs, threads, log
        self._running, self.all = {}, []

    def __call__(self, program):
        if program not in self._running:
            self._running[program] = self.start("", program)
        return self._running[program]

    def start(self, flags, program="bench_steps", folder=None):
        everything = [os.environ.get("BITALE_FLAGS"), f"threads={self._threads}", flags]
        environment = {"BITALE_FLAGS": ",".join(f for f in everything if f)}
        command = [str((folder or self._programs) / program)]
        self.all.append(participants.Participant(command, environment, self.cores, self._log))
        return self.all[-1]


def kernel_facts(kernel, ms):
    operations, size = floors.kernel_cost(kernel)
    return {"op": kernel["op"], "bytes": size, "gbs": round(size / ms * 1e-6, 2),
            "gflops": round(operations / ms * 1e-6, 2) or None}


def revision(folder):
    git = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=10"]
    return machine.first_line(git)


if __name__ == "__main__":
    main()
