"""Runs the benchmarks: python3 benchmarks/driver [options]; see docs/benchmarks.md."""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from driver import floors, machine, participants, peers, rounds, tables  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bitale" / "bench"


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Benchmarks against peers.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--only", metavar="W", default="", help="workloads or groups of them, with commas")
    parser.add_argument("--json", metavar="FILE", help="results; a table in Markdown is written beside it")
    parser.add_argument("--save", action="store_true", help="into benchmarks/results/<date>-<machine class>")
    parser.add_argument("--ours", action="store_true", help="without peers")
    parser.add_argument("--prepare", action="store_true",
                        help="measure nothing: let everybody compile, so that the next run finds it done")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--programs", default=str(HERE.parent / "build" / "release" / "benchmarks"))
    return parser.parse_args()


def chosen(description, only):
    wanted = [w for w in only.split(",") if w]
    names = [name for name, entry in description["workloads"].items()
             if not wanted or name in wanted or entry["group"] in wanted]
    unknown = [w for w in wanted if w not in description["workloads"] and
               w not in {e["group"] for e in description["workloads"].values()}]
    if unknown:
        sys.exit(f"unknown workload {', '.join(unknown)}; there are {', '.join(description['workloads'])}")
    return names


def peers_folder():
    return pathlib.Path(os.environ.get("BITALE_PEERS") or CACHE.parent / "peers-venv")


def start_peers(options, cores, log):
    """The processes that answer, and the versions of the peers."""
    started, versions = {}, {}
    python = peers_folder() / "bin" / "python"
    if options.ours or not python.exists():
        return started, versions
    cache = {"BITALE_BENCH_CACHE": str(CACHE), "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "torch")}
    for name, (program, environment) in peers.processes(options.threads).items():
        participant = participants.Participant([str(python), str(HERE / "peers" / program)],
                                               environment | cache, cores, log)
        try:
            versions[name.split("-")[0]] = participant.ask(version=True)["version"]
            started[name] = participant
        except participants.Failed as error:
            rounds.note(f"{name}: {error}")
            participant.end()
    return started, versions


def memory_file(versions):
    """Probes of earlier runs with the same versions."""
    key = "-".join(f"{name}{version}" for name, version in sorted(versions.items())) or "none"
    return CACHE / f"forms-{key}.json"


def main():
    options = arguments()
    description = json.loads((HERE / "networks.json").read_text())
    names = chosen(description, options.only)
    cores = set(sorted(os.sched_getaffinity(0))[:options.threads])
    CACHE.mkdir(parents=True, exist_ok=True)
    programs = pathlib.Path(options.programs)
    flags = ",".join(f for f in (os.environ.get("BITALE_FLAGS"), f"threads={options.threads}") if f)
    with open(CACHE / "log.txt", "w") as log:
        roof_process = participants.Participant([str(programs / "bench_roofs")], {}, cores, log)
        ours = participants.Participant([str(programs / "bench_steps")], {"BITALE_FLAGS": flags}, cores, log)
        everyone = [roof_process, ours]
        try:
            started, versions = start_peers(options, cores, log)
            everyone += started.values()
            result = run(options, description, names, roof_process, ours, started, versions)
        finally:
            for participant in everyone:
                participant.end()
    text = tables.document(result)
    write(options, result, text)
    print(tables.markdown(result) if result["rows"] else "")


def run(options, description, names, roof_process, ours, started, versions):
    facts = machine.description()
    roofs = machine.Roofs(roof_process, options.threads, 0.02 if options.quick or options.ours else 0.1)
    if options.prepare:
        rounds.prepare(description, names, started)
        sys.exit()
    memory = memory_file(versions)
    remembered = json.loads(memory.read_text()) if memory.exists() else {}
    session = rounds.Session(roofs, ours, started, 0.1 if options.quick or options.ours else 0.3,
                             options.rounds or (3 if options.quick else 5), remembered)
    result = {"date": datetime.date.today().isoformat(), "class": machine.machine_class(facts),
              "machine": facts, "threads": options.threads, "quick": options.quick,
              "versions": versions | {"bitale": revision()}, "roofs": {}, "rows": []}
    for name in names:
        rounds.note(f"({name})")
        forms = [] if options.ours else peers.forms(description, name)
        outcome = rounds.measure(session, name, forms, options.quick)
        workload = description["workloads"][name]
        floor = floors.floor_ms(description, name, roofs)
        result["rows"] += tables.rows_of(name, workload, outcome, floor, versions)
        if started:
            memory.write_text(json.dumps(session.memory))
    result["roofs"] = roofs.as_json()
    return result


def revision():
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=10"]
    return machine.first_line(git)


def write(options, result, text):
    files = []
    if options.json:
        files.append(pathlib.Path(options.json))
    if options.save:
        files.append(HERE / "results" / f"{result['date']}-{result['class']}.json")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
        file.with_suffix(".md").write_text(text)
        rounds.note(f"written: {file}, {file.with_suffix('.md')}")


if __name__ == "__main__":
    main()
