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
    groups = {name: entry["group"] for name, entry in description["workloads"].items()}
    groups |= {name: "g" for name in description["kernels"]}
    unknown = [w for w in wanted if w not in groups and w not in groups.values()]
    if unknown:
        sys.exit(f"unknown workload {', '.join(unknown)}; there are {', '.join(groups)}")
    return [name for name, group in groups.items() if not wanted or name in wanted or group in wanted]


def peers_folder():
    return pathlib.Path(os.environ.get("BITALE_PEERS") or CACHE.parent / "peers-venv")


def start_peers(options, wanted, cores, log):
    """The wanted processes, as far as they answer, and the versions of the peers."""
    started, versions = {}, {}
    python = peers_folder() / "bin" / "python"
    cache = {"BITALE_BENCH_CACHE": str(CACHE), "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "torch")}
    for name, (program, environment) in peers.processes(options.threads).items():
        command = ([str(python), str(HERE / "peers" / program)] if program.endswith(".py") else
                   [str(pathlib.Path(options.programs) / program)])
        if name not in wanted or not pathlib.Path(command[0]).exists():
            continue
        participant = participants.Participant(command, environment | cache, cores, log)
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
    description |= json.loads((HERE / "kernels.json").read_text())
    names = chosen(description, options.only)
    cores = set(sorted(os.sched_getaffinity(0))[:options.threads])
    CACHE.mkdir(parents=True, exist_ok=True)
    programs = pathlib.Path(options.programs)
    flags = ",".join(f for f in (os.environ.get("BITALE_FLAGS"), f"threads={options.threads}") if f)
    with open(CACHE / "log.txt", "w") as log:
        roof_process = participants.Participant([str(programs / "bench_roofs")], {}, cores, log)
        ours = {program: participants.Participant([str(programs / program)], {"BITALE_FLAGS": flags}, cores, log)
                for program in ("bench_steps", "bench_kernels")}
        everyone = [roof_process, *ours.values()]
        try:
            forms = {} if options.ours else {name: forms_of(description, name) for name in names}
            wanted = {form.process for of_one in forms.values() for form in of_one}
            started, versions = start_peers(options, wanted, cores, log)
            everyone += started.values()
            result = run(options, description, names, forms, roof_process, ours, started, versions)
        finally:
            for participant in everyone:
                participant.end()
    print(tables.markdown(result) if result["rows"] else "")


def forms_of(description, name):
    kernel = description["kernels"].get(name)
    return peers.kernel_forms(kernel) if kernel else peers.forms(description, name)


def run(options, description, names, forms, roof_process, ours, started, versions):
    facts = machine.description()
    roofs = machine.Roofs(roof_process, options.threads, 0.02 if options.quick or options.ours else 0.1)
    if options.prepare:
        rounds.prepare(forms, started)
        sys.exit()
    memory = memory_file(versions)
    remembered = json.loads(memory.read_text()) if memory.exists() else {}
    session = rounds.Session(roofs, started, 0.1 if options.quick or options.ours else 0.3,
                             options.rounds or (3 if options.quick else 5), remembered)
    result = {"date": datetime.date.today().isoformat(), "class": machine.machine_class(facts),
              "machine": facts, "threads": options.threads, "quick": options.quick,
              "versions": versions | {"bitale": revision()}, "roofs": {}, "rows": []}
    for name in names:
        rounds.note(f"({name})")
        kernel = description["kernels"].get(name)
        process = ours["bench_kernels" if kernel else "bench_steps"]
        outcome = rounds.measure(session, process, name, forms.get(name, []), options.quick, calls=not kernel)
        if kernel:
            floor = floors.kernel_floor_ms(kernel, roofs)
            facts = kernel_facts(kernel, outcome.ours.median())
        else:
            floor = floors.floor_ms(description, name, roofs)
            facts = {key: description["workloads"][name][key] for key in ("title", "batch")}
        result["rows"] += tables.rows_of(name, facts, outcome, floor, versions)
        result["roofs"] = roofs.as_json()
        if started:
            memory.write_text(json.dumps(session.memory))
        write(options, result)  # after each workload: a run that is ended early leaves what it has
    return result


def kernel_facts(kernel, ms):
    operations, size = floors.kernel_cost(kernel)
    return {"op": kernel["op"], "bytes": size, "gbs": round(size / ms * 1e-6, 2),
            "gflops": round(operations / ms * 1e-6, 2) or None}


def revision():
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=10"]
    return machine.first_line(git)


def write(options, result):
    files = []
    if options.json:
        files.append(pathlib.Path(options.json))
    if options.save:
        files.append(HERE / "results" / f"{result['date']}-{result['class']}.json")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
        file.with_suffix(".md").write_text(tables.document(result))


if __name__ == "__main__":
    main()
