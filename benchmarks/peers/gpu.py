"""What the peers on a GPU share: forms measured one by one, each in a process of its own, into one JSON file.

    benchmarks/peers/torch_gpu.py --workload b20 --json results.json

Each form has its own limit of time, and a form that fails or takes too long leaves its reason. The fields are
those of gpu_steps: us, the median of the rounds; rounds_us; steps_a_round; loss.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

try:
    import common
except ImportError as problem:  # no NumPy: every form says so
    common, missing = None, str(problem)


def options_of(forms):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", required=True, action="append", metavar="NAME",
                        help="one of networks.json; with --warm it may be repeated")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the script; default: cuda")
    parser.add_argument("--json", help="the file of the results")
    parser.add_argument("--form", action="append", choices=forms, help="only this form; may be repeated")
    parser.add_argument("--seconds", type=float, default=60, help="limit of each form; default: 60")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=0, help="default: the workload's own")
    parser.add_argument("--tf32", action="store_true", help="allow factors of products to be rounded to TF32")
    parser.add_argument("--reduced", action="store_true",
                        help="fewer images, rounds and steps, to try the script")
    parser.add_argument("--warm", action="store_true",
                        help="run three steps and time nothing, to fill caches: all in one process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if len(options.workload) > 1 and not options.warm:
        parser.error("several workloads are for --warm: times are of one")
    return options


def workload_of(options, name):
    workload = common.Workload(name)
    if options.reduced:
        workload.count = 64
        workload.batch = min(workload.batch, 4 if name[0] in "de" else 24)
    if options.batch:
        workload.batch = options.batch
    return workload


def measure(run, options):
    """run(steps) returns the last loss as a number, once all is done."""
    multiple = getattr(run, "multiple", 1)
    start = time.perf_counter()
    run(max(3, multiple))
    setup = time.perf_counter() - start
    if options.warm:
        return {"setup_seconds": setup}

    def one_round(steps):
        begin = time.perf_counter()
        loss = run(steps)
        return 1e6 * (time.perf_counter() - begin) / steps, loss

    steps = max(2, multiple)
    rounds = 2
    if not options.reduced:
        us, _ = one_round(multiple * max(1, 20 // multiple))
        steps = multiple * max(1, min(round(1e5 / us / multiple), 5000 // multiple))
        one_round(steps)
        rounds = options.rounds
    times, losses = zip(*(one_round(steps) for _ in range(rounds)))
    return {"us": statistics.median(times), "rounds_us": times, "steps_a_round": steps, "loss": losses[-1],
            "setup_seconds": setup}


def child(options, version, make):
    """Measures one form; the answer is the last line that is printed."""
    try:
        workload = workload_of(options, options.workload[0])
        entry = {"state": "passed", **measure(make(workload, options.form[0], options), options)}
    except common.NotSupported as reason:
        entry = {"state": "skipped", "why": str(reason)}
    except ImportError as problem:
        entry = {"state": "skipped", "why": str(problem)}
    except Exception as problem:
        entry = {"state": "failed", "error": f"{type(problem).__name__}: {problem}"[:2000]}
    if entry["state"] == "passed":
        entry["version"] = version()
    print("\n" + json.dumps(entry), flush=True)
    # Without the interpreter's end: a device that hangs must not keep it.
    os._exit(0)


def warm(options, forms, make):
    """Three steps of each form of each workload, in one process, as an import takes as long as they do."""
    failed = False
    for name in options.workload:
        for form in options.form or forms:
            begin = time.perf_counter()
            try:
                measure(make(workload_of(options, name), form, options), options)
                said = "warm"
            except Exception as problem:
                failed = True
                said = f"{type(problem).__name__}: {problem}"[:2000]
            print(f"{name}  {form}  {time.perf_counter() - begin:.1f} s  {said}", flush=True)
    # As in child().
    os._exit(1 if failed else 0)


def write(results, path):
    if not path:
        return
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def form_in_process(form, options):
    command = [sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], "--form", form, "--child"]
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=options.seconds)
        lines = done.stdout.strip().splitlines()
        try:
            entry = json.loads(lines[-1])
        except (IndexError, ValueError):
            entry = {"state": "failed", "error": f"ended with {done.returncode}: {done.stderr[-1500:]}"}
    except subprocess.TimeoutExpired:
        entry = {"state": "failed", "error": f"ended after {options.seconds:.0f} s, the limit of a form"}
    return {**entry, "seconds": time.perf_counter() - begin}


def main(program, forms, version, make):
    """version() and make(workload, form, options) are called in the process of the form."""
    options = options_of(forms)
    if options.child:
        options.form = options.form[-1:]
        child(options, version, make)
    if options.warm:
        if not common:
            sys.exit(missing)
        warm(options, forms, make)
    results = {"program": program, "workload": options.workload[0], "device": options.device,
               "tf32": options.tf32, "reduced": options.reduced, "finished": False, "running": None,
               "items": {}}
    if common:
        workload = workload_of(options, options.workload[0])
        results.update(batch=workload.batch, images=workload.count)
    for form in options.form or forms:
        results["running"] = form
        write(results, options.json)
        entry = form_in_process(form, options) if common else {"state": "skipped", "why": missing}
        results["version"] = entry.pop("version", results.get("version"))
        results["items"][form] = entry
        results["running"] = None
        write(results, options.json)
        said = entry.get("us", entry.get("error", entry.get("why")))
        print(f"{entry['state']:>8}  {form}  {said}", flush=True)
    results["finished"] = True
    write(results, options.json)
    return 1 if any(entry["state"] == "failed" for entry in results["items"].values()) else 0
