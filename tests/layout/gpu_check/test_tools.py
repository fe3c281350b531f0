"""The parts that need a GPU's tools, with programs in their place that print what the tools print."""

import json
import os
import re
import sys
import time
from unittest import mock

from support import ROOT, InFolder

from gpu import commands, parts, peers, second
from gpu.visit import Skip

# Stands for compute-sanitizer: runs the command, and finds what FOUND says.
SANITIZER = """
    import os, subprocess, sys
    what, command = sys.argv[2], sys.argv[sys.argv.index("--print-limit") + 2:]
    status = subprocess.run(command).returncode
    print("========= COMPUTE-SANITIZER")
    bad = what in {found!r}
    if bad:
        print("========= Invalid __global__ write of size 4 bytes")
        lines = "debug_lines=on" in os.environ["BITALE_FLAGS"]
        print("=========     at k_12ab34cd+0x90" + (" in kernels.cu:14" if lines else ""))
    print("========= ERROR SUMMARY: %d errors" % bad)
    sys.exit(99 if bad else status)
"""
PROFILER = """
    import sys
    assert sys.argv[sys.argv.index("--clock-control") + 1] == "none"
    print("==PROF== Connected to process 1", "regex:^(k_slow|k_slow_1)$" in sys.argv)
    print('"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"')
    print('"0","k_slow","GPU Speed Of Light Throughput","DRAM Throughput","%","12.5"')
"""
STICKY = """
    import os, sys
    print("failed  check: kernel k_12ab34cd of train (phase 1 of 1, 3 blocks of 32 threads), "
          "which computes dot at net.cpp:4 fails: illegal address; device cuda is not usable any more in this process")
    sys.exit(1)
"""
WRONG = """
    import json, os, sys
    right = "graphs=off" in os.environ["BITALE_FLAGS"]
    if "launches=compare" in os.environ["BITALE_FLAGS"]:
        assert sys.argv[sys.argv.index("--steps") + 1] == "2"
        sys.exit('check: SAID')
    check = {"state": "passed"} if right else {
        "state": "failed", "error": "w0 differs by 0.5", "against": "cpu", "steps": 10,
        "loss_difference": 0.25,
        "bounds": {"two_steps": 0.01}, "parameters": [{"name": "b0", "after_first": {"difference": 0.1}},
                                                      {"name": "w0", "after_first": {"difference": 0.5}}]}
    with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
        json.dump({"workload": "a", "items": {"build": {"state": "passed"}, "check": check}}, file)
    sys.exit(0 if right else 1)
"""
DIFFERS = (
    "kernel k_12 of train (phase 1 of 1, 1 blocks of 32 threads), which computes dot at net.cpp:4: of shared "
    'variable "w0" float32 [8, 2], element 3 is 4 on device cuda, and -2.5 when the emulator repeats the '
    "launch; 1 of 16 elements differ"
)
FIRST = {
    "ceilings": {"graph_node": 1.0},
    "parts": [
        {
            "part": "times",
            "entries": [
                {
                    "result": {
                        "workload": "c8",
                        "items": {
                            "build": {"kernels": [{"phases": [{"entry": "k_slow"}, {"entry": "k_slow_1"}]}]},
                            "profile": {"rows": [{"name": "k_slow", "us": 50.0, "bytes": 1, "flops": 1}]},
                        },
                    }
                }
            ],
        }
    ],
}


# Stands for gpu_probe and gpu_steps on a driver whose FAULTY parts never end, or are wrong.
LADDER = """
    import json, os, sys, time
    FAULTY = {faulty!r}
    flags, words = os.environ["BITALE_FLAGS"], sys.argv
    def done(items):
        with open(words[words.index("--json") + 1], "w") as file:
            json.dump({{"workload": "a", "items": items}}, file)
    if "--only" in words and "--workload" not in words:
        name = words[words.index("--only") + 1]
        if FAULTY.get(name) == "hang" and "launches=" not in flags:
            time.sleep(99)
        if FAULTY.get(name) == "crash":
            os.abort()
        done({{name: {{"state": "passed", "us": 1.0}}}})
        sys.exit()
    loops = not any(word in flags for word in ("graphs=", "launches="))
    graphs = "graphs=off" not in flags and "launches=" not in flags
    if "while" in FAULTY and loops or "graph" in FAULTY and graphs:
        time.sleep(99)
    if "cudnn" in FAULTY and "disable=cudnn" not in flags:
        os.abort()
    done({{"check": {{"state": "passed"}}, "loop": {{"state": "passed", "us": 50.0}}}})
"""


class Ladder(InFolder):
    def visited(self, faulty, names):
        made = self.visit(device="cuda", quick=True)
        made.tools = {"ncu": None, "compute-sanitizer": None}
        for name in ("gpu_probe", "gpu_steps"):
            self.program(name, LADDER.format(faulty=faulty))
        chosen = [part for part in parts.FIRST if part.name in names]
        with mock.patch("gpu.visit.QUICK", 3):
            made.run_parts(chosen)
        return made.results.data, {part["part"]: part for part in made.results.data["parts"]}

    def test_what_a_while_node_breaks_runs_without_one(self):
        data, found = self.visited({"while": "hang"}, ("graph", "while", "steps", "ceilings"))
        self.assertEqual((found["graph"]["state"], found["while"]["state"]), ("passed", "failed"))
        self.assertEqual(found["steps"]["state"], "passed")
        self.assertEqual(len(data["faults"]), 1)
        self.assertEqual(data["faults"][0]["memcheck"], "not tried: memcheck finds accesses, not hangs")
        self.assertEqual(data["fallbacks"], ["graphs=step"])
        self.assertTrue(
            any(re.match("graphs=step from here on: while did not pass", line) for line in data["reduced"])
        )
        turn = found["ceilings"]["entries"][-1]
        self.assertEqual((turn["name"], turn["state"]), ("while_turn", "skipped"))
        self.assertIn("graphs=step", turn["why"])

    def test_what_graphs_break_runs_without_graphs(self):
        data, found = self.visited({"graph": "hang"}, ("graph", "while", "steps"))
        self.assertEqual([part["state"] for part in found.values()][1:], ["failed", "skipped", "passed"])
        self.assertEqual(data["fallbacks"], ["graphs=off"])

    def test_what_cudnn_breaks_runs_without_cudnn(self):
        data, found = self.visited({"cudnn": "crash"}, ("libraries", "steps"))
        self.assertEqual((found["libraries"]["state"], found["steps"]["state"]), ("failed", "passed"))
        self.assertEqual(data["fallbacks"], ["disable=cudnn"])

    def test_cublaslt_has_no_flag(self):
        data, _ = self.visited({"cublaslt": "crash"}, ("libraries",))
        self.assertEqual(data["fallbacks"], [])
        self.assertTrue(any("cublaslt" in line and "no flag" in line for line in data["reduced"]))

    def test_a_step_that_hangs_is_narrowed_and_later_parts_learn_from_it(self):
        self.program("gpu_steps", LADDER.format(faulty={"while": "hang"}))
        made = self.visit(device="cuda", quick=True)
        made.tools = {"compute-sanitizer": None}
        with mock.patch("gpu.visit.QUICK", 3):
            made.run_parts([part for part in parts.FIRST if part.name in ("steps", "times")])
        data = made.results.data
        found = {part["part"]: part for part in data["parts"]}
        narrowed = found["steps"]["entries"][0]["narrowed"]
        self.assertEqual((list(narrowed), narrowed["graphs=step"]), (["again", "graphs=step"], "right"))
        self.assertEqual(data["fallbacks"], ["graphs=step"])
        self.assertEqual(found["times"]["state"], "passed")

    def test_all_steps_are_checked_before_any_is_narrowed(self):
        made = self.visit(device="cuda")
        made.tools = {"compute-sanitizer": None}
        self.program("gpu_steps", WRONG.replace("SAID", "it fails"))
        order = []
        command = made.command

        def noted(name, *words, **more):
            order.append(name)
            return command(name, *words, **more)

        made.command = noted
        with mock.patch("gpu.parts.workloads", return_value=("a", "c8")):
            parts.steps(made)
        self.assertEqual(sorted(name.split(":")[0] for name in order[:2]), ["a", "c8"])
        narrowed = [f"{name}, {flag}" for name in ("a", "c8") for flag in parts.SUSPECTS]
        self.assertEqual(sorted(order[2:]), sorted(narrowed))
        self.assertEqual([entry["state"] for entry in made.part["entries"]], ["failed", "failed"])


class Tools(InFolder):
    def on_a_gpu(self, **tools):
        made = self.visit(device="cuda")
        made.tools = {"ncu": None, "compute-sanitizer": None, **tools}
        return made

    def test_sanitizers(self):
        made = self.on_a_gpu(
            **{"compute-sanitizer": self.program("sanitizer", SANITIZER.format(found=["racecheck"]))}
        )
        for name in ("gpu_probe", "test_cuda"):
            self.program(name, "")
        second.sanitizers(made)
        entries = {entry["name"]: entry for entry in made.part["entries"]}
        self.assertEqual(len(entries), 8)
        self.assertEqual(
            {name for name, entry in entries.items() if entry["state"] == "failed"},
            {"racecheck: networks", "racecheck: kernel and graph"},
        )
        self.assertEqual(entries["racecheck: networks"]["why"], "Invalid __global__ write of size 4 bytes")
        self.assertEqual(entries["racecheck: networks"]["found"]["line"], "kernels.cu:14")
        self.assertEqual(entries["memcheck: networks"]["found"]["summary"], "ERROR SUMMARY: 0 errors")
        self.program("test_cuda", "print('losses differ'); raise SystemExit(3)")
        second.sanitizers(made)
        self.assertEqual(
            [entry["why"] for entry in made.part["entries"][8:] if entry["name"] == "memcheck: networks"],
            ["no finding, but the program fails (exit status 3): losses differ"],
        )

    def test_core_continues_with_what_no_visit_has_passed(self):
        made = self.on_a_gpu()
        self.program("test_numerics", "print('[#one_test] [#two_test] [#views_test] [#arm64_test] [slow]')")
        path = self.path("first.json")
        passed = {"name": "test_numerics [#one_test]~[slow]", "state": "passed", "not_run": []}
        before = {"visit": "first", "device": "cuda", "where": None, "date": "2026-11-26"}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(before, parts=[{"part": "core", "entries": [passed]}]), file)
        made.options.known = [path]
        ran = []
        took = lambda visit, program, tags, seconds: ran.append(f"{program} {tags}")
        seed = mock.patch.dict(os.environ, {"BITALE_TEST_SEED": "5"})
        one_core = mock.patch("os.sched_getaffinity", return_value={0})
        with mock.patch("gpu.suite.run_file", took), seed, one_core:
            parts.core(made)
        self.assertEqual(ran[: len(parts.CORE)], parts.CORE)
        rest = ["test_cuda [#cubins_test]~[slow]"]
        rest += [f"test_numerics [#{name}_test]~[slow]" for name in ("two", "one")]
        self.assertEqual(ran[len(parts.CORE) :], rest)
        self.assertEqual(made.part["seed"], "5")
        with open(self.path("out", "log.txt"), encoding="utf-8") as file:
            self.assertIn("BITALE_TEST_SEED=5\n", file.read())

    def test_a_slow_tool_is_no_hang(self):
        made = self.on_a_gpu()
        program = self.program("gpu_steps", "import time; time.sleep(30)")
        watched, _ = made.command("watched", [program], 1, isolate=False)
        self.assertEqual(watched["state"], "skipped")
        self.assertRegex(watched["why"], "^out of time: ended after its limit of 1 s")
        self.assertEqual(made.results.data["faults"], [])

    def test_a_fault_is_tried_under_memcheck(self):
        made = self.on_a_gpu(
            **{"compute-sanitizer": self.program("sanitizer", SANITIZER.format(found=["memcheck"]))}
        )
        entry, _ = made.command("a", [self.program("gpu_steps", STICKY)], 20)
        self.assertEqual((entry["state"], entry["fault"]), ("failed", 0))
        fault = made.results.data["faults"][0]
        self.assertEqual((fault["kernel"], fault["phase"], fault["lines"]), ("k_12ab34cd", 1, ["net.cpp:4"]))
        self.assertEqual(
            (fault["memcheck"]["line"], fault["memcheck"]["kernel"]), ("kernels.cu:14", "k_12ab34cd")
        )

    def test_counters(self):
        made = self.on_a_gpu(ncu=self.program("ncu", PROFILER))
        self.program("gpu_steps", "")
        with self.assertRaisesRegex(Skip, "--after FILE"):
            second.counters(made)
        made.options.after = "first.json"
        with mock.patch("gpu.facts.read_json", return_value=FIRST):
            second.counters(made)
        entry = made.part["entries"][0]
        self.assertEqual(entry["name"], "k_slow of c8")
        self.assertEqual(
            entry["counters"],
            [
                {
                    "kernel": "k_slow",
                    "section": "GPU Speed Of Light Throughput",
                    "metric": "DRAM Throughput",
                    "unit": "%",
                    "value": "12.5",
                }
            ],
        )
        self.assertIn("True", made.results.texts[entry["text"]])
        self.program("ncu", "print('==ERROR== ERR_NVGPUCTRPERM - no permission'); raise SystemExit(1)")
        with mock.patch("gpu.facts.read_json", return_value=FIRST):
            second.counters(made)
        self.assertEqual(
            (made.part["entries"][1]["state"], made.part["entries"][1]["why"]),
            ("failed", "ERR_NVGPUCTRPERM - no permission"),
        )

    def test_tools_that_are_not_there(self):
        made = self.on_a_gpu()
        made.options.after = "first.json"
        with mock.patch("gpu.facts.read_json", return_value=FIRST), self.assertRaisesRegex(
            Skip, "ncu is not installed"
        ):
            second.counters(made)
        with self.assertRaisesRegex(Skip, "compute-sanitizer is not installed"):
            second.sanitizers(made)
        with self.assertRaisesRegex(Skip, "no program gpu_steps"):
            made.program("gpu_steps")

    def test_engines(self):
        made = self.on_a_gpu()
        self.program("gpu_probe", PROBE)
        second.engines(made)
        entries = {entry["name"]: entry for entry in made.part["entries"]}
        self.assertEqual(
            list(entries), ["d", "e64", "e", "b128", "d tf32", "e64 tf32", "e tf32", "b128 tf32"]
        )
        self.assertEqual(
            {name for name, entry in entries.items() if entry["state"] == "failed"}, {"e64 tf32", "b128"}
        )
        self.assertEqual(entries["b128"]["why"], "engine 4: error 0.3")
        # What a process found before it crashed is kept, and the engine that it ran is named.
        self.assertEqual(entries["e64 tf32"]["result"]["calls"][0]["engines"][1]["us"], 3.0)
        self.assertEqual(
            (made.results.data["faults"][0]["case"], made.results.data["faults"][0]["kernel"]),
            ("e64 tf32", "engine 4"),
        )
        self.assertEqual(len(made.part["table"][1]), 8)
        self.assertEqual(
            made.part["table"][1][0], ["d", "a convolution", 4, 3, "cuDNN's engine 3", 5.0, "engine 7", 3.0]
        )

    def test_a_wrong_step_is_narrowed_down(self):
        made = self.on_a_gpu()
        made.options.quick = True
        self.program("gpu_steps", WRONG.replace("SAID", "it fails"))
        parts.steps(made)
        entry = made.part["entries"][0]
        self.assertEqual(
            (entry["state"], entry["narrowed"]), ("failed", {"graphs=off": "right", "disable=cudnn": "wrong"})
        )
        self.assertEqual(
            entry["why"],
            "check: w0 differs by 0.5; right with graphs=off, wrong with disable=cudnn; "
            "no launch differs with launches=compare",
        )
        self.assertEqual(
            made.part["table"][1], [["a", "failed", "cpu", 10, 0.25, "w0", 0.5, "two_steps 0.01"]]
        )
        self.assertEqual(made.results.data["faults"], [])
        self.program("gpu_steps", WRONG.replace("SAID", DIFFERS))
        parts.steps(made)
        entry, fault = made.part["entries"][1], made.results.data["faults"][0]
        self.assertEqual(
            (entry["fault"], fault["kind"], fault["kernel"], fault["phase"]), (0, "wrong", "k_12", 1)
        )
        self.assertEqual((fault["case"], fault["lines"]), (entry["name"], ["net.cpp:4"]))
        self.assertEqual((fault["buffer"], fault["element"]), ('shared variable "w0" float32 [8, 2]', 3))
        self.assertEqual(
            (fault["got"], fault["expected"], fault["differ"], fault["count"]), ("4", "-2.5", 1, 16)
        )
        self.assertIn('; k_12 is wrong in shared variable "w0"', entry["why"])

    def test_peers(self):
        made = self.on_a_gpu()
        made.options.root, made.options.quick = self.folder, True
        made.end = made.part_end = time.monotonic() + 500
        with open(self.path("modules", "torch.py"), "w", encoding="utf-8") as file:
            file.write("__version__ = '2.0'\n")
        with open(self.path("benchmarks", "peers", "torch_gpu.py"), "w", encoding="utf-8") as file:
            file.write(PEER)
        with mock.patch.dict(os.environ, {"PYTHONPATH": self.path("modules")}):
            peers.peers(made)
        entries = {entry["name"]: entry for entry in made.part["entries"]}
        self.assertEqual(entries["torch a: eager"]["state"], "passed")
        self.assertEqual(entries["torch a: graph"]["why"], "graph: no")
        self.assertEqual(made.part["table"], [["us a step", "a"], [["torch, eager", 12.5]]])
        self.assertEqual(entries["jax"]["state"], "skipped")
        with open(self.path("out", "log.txt"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"torch compiled ahead for compile: a: \d+ s\n")
        forms = ("graph", "compile graph", "eager", "compile")
        self.assertEqual(list(entries), ["jax", *(f"torch a: {form}" for form in forms)])
        self.assertIn("No module named 'jax'", entries["jax"]["why"])


    def test_peers_are_warmed_together_and_the_best_forms_come_first(self):
        made = self.on_a_gpu()
        made.options.root = self.folder
        made.end = made.part_end = time.monotonic() + 500
        for name in peers.FRAMEWORKS:
            with open(self.path("modules", f"{name}.py"), "w", encoding="utf-8") as file:
                file.write("__version__ = '2.0'\n")
        for name in peers.FRAMEWORKS.values():
            with open(self.path("benchmarks", "peers", name), "w", encoding="utf-8") as file:
                file.write(COUNTED.format(log=self.path("commands")))
        names = ("a", "b20", "b128", "c8", "d")
        with mock.patch.dict(os.environ, {"PYTHONPATH": self.path("modules")}), mock.patch(
            "gpu.peers.workloads", return_value=names
        ):
            peers.peers(made)
        with open(self.path("commands"), encoding="utf-8") as file:
            ran = [line.strip().split() for line in file]
        after = lambda line, word: line[line.index(word) + 1]
        all_after = lambda line, word: [line[k + 1] for k, each in enumerate(line) if each == word]
        # What JAX scans is compiled, by eight processes at most, each workload in one of them; then timed.
        first = [line for line in ran if "--warm" in line and all_after(line, "--form") == ["scan"]]
        self.assertEqual({line[0] for line in first}, {"jax_gpu.py"})
        of = lambda lines: sorted(name for line in lines for name in all_after(line, "--workload"))
        self.assertEqual(of(first), sorted(names))
        self.assertTrue(all(line in first for line in ran[: len(first)]))
        timed = [(after(line, "--workload"), after(line, "--form")) for line in ran if "--warm" not in line]
        best = [(name, form) for name in ("b128", "c8", "d", "a", "b20") for form in ("scan", "graph")]
        self.assertEqual(timed[:10], best)
        self.assertTrue(all("--warm" not in line for line in ran[len(first) : len(first) + 10]))
        # Only then the other forms of both, by four processes of each.
        second = ran[len(first) + 10 :][:8]
        self.assertTrue(all("--warm" in line for line in second))
        for program, forms in (("jax_gpu.py", ["jit"]), ("torch_gpu.py", ["compile"])):
            own = [line for line in second if line[0] == program]
            self.assertEqual([all_after(line, "--form") for line in own], [forms] * 4)
            self.assertEqual(of(own), sorted(names))
        self.assertEqual(len(timed), 5 * 6)

    def test_forms_that_nobody_had_time_to_compile_are_left_out(self):
        made = self.on_a_gpu()
        made.options.root, made.options.quick = self.folder, True
        made.end = made.part_end = time.monotonic() + peers.A_COMPILED_FORM - 1
        with open(self.path("modules", "torch.py"), "w", encoding="utf-8") as file:
            file.write("__version__ = '2.0'\n")
        with open(self.path("benchmarks", "peers", "torch_gpu.py"), "w", encoding="utf-8") as file:
            file.write(PEER)
        with mock.patch.dict(os.environ, {"PYTHONPATH": self.path("modules")}):
            peers.peers(made)
        entries = {entry["name"]: entry for entry in made.part["entries"]}
        for form in ("compile graph", "compile"):
            self.assertEqual(entries[f"torch a: {form}"]["why"], "no time to compile ahead")
        self.assertEqual(entries["torch a: eager"]["state"], "passed")

    def test_one_process_warms_several_steps(self):
        files = {"common": "class Workload:\n    def __init__(self, name): self.name = name\n", "peer": WARM}
        for name, text in files.items():
            with open(self.path("warm", f"{name}.py"), "w", encoding="utf-8") as file:
                file.write(text)
        command = [sys.executable, self.path("warm", "peer.py"), "--workload", "a", "--workload", "b20"]
        environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "benchmarks", "peers"))
        ended = commands.run([*command, "--warm"], 30, environment)
        lines = [line.split()[:2] + line.split()[4:5] for line in ended.text.splitlines()]
        self.assertEqual(
            lines,
            ["a jit warm".split(), "a scan ValueError:".split(), "b20 jit warm".split(), "b20 scan warm".split()],
        )
        self.assertEqual(ended.status, 1)
        self.assertIn("several workloads are for --warm", commands.run(command, 30, environment).text)

    def test_an_import_that_takes_too_long_is_not_a_missing_module(self):
        made = self.on_a_gpu()
        for name in peers.FRAMEWORKS:
            with open(self.path("modules", f"{name}.py"), "w", encoding="utf-8") as file:
                file.write("import time; time.sleep(30)\n")
        made.end = made.part_end = time.monotonic() + 6
        begin = time.monotonic()
        with mock.patch.dict(os.environ, {"PYTHONPATH": self.path("modules")}):
            peers.peers(made)
        self.assertLess(time.monotonic() - begin, 20)
        entries = {entry["name"]: entry for entry in made.part["entries"]}
        self.assertEqual({entry["state"] for entry in entries.values()}, {"skipped"})
        self.assertRegex(entries["torch"]["why"], "^import torch did not end: .* limit of [56] s")
        self.assertEqual(entries["jax"]["why"], "out of time")


PROBE = """
import json, os, signal, sys
name = sys.argv[sys.argv.index("--only") + 1]
assert "--engines" in sys.argv
slow = {"engine": "engine 3", "qualifies": True, "chosen": True, "state": "passed", "us": 5.0}
fast = {"engine": "engine 7", "qualifies": True, "chosen": False, "state": "passed", "us": 3.0}
last = {"engine": "engine 4", "qualifies": True, "chosen": False, "state": "failed", "us": 1.0}
item = {"state": "passed", "calls": [{"call": "a convolution", "chosen": "cuDNN's engine 3", "engines": [
    slow, fast, last, {"engine": "engine 5", "qualifies": False, "why": "less exact"}]}]}
if name == "b128":
    item.update(state="failed", error="engine 4: error 0.3")
if name == "e64 tf32":
    item.update(state="running")
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    json.dump({"launching": "engine 4", "items": {name: item}}, file)
if name == "e64 tf32":
    os.kill(os.getpid(), signal.SIGSEGV)
sys.exit(name == "b128")
"""
WARM = """
import sys, gpu
def make(workload, form, options):
    if (workload.name, form) == ("a", "scan"):
        raise ValueError("no")
    return lambda steps: 0.5
sys.exit(gpu.main("peer", ["jit", "scan"], lambda: "1", make))
"""
# Writes down how it was called, and whether the caches of compiled code are the visit's.
COUNTED = """
import json, os, sys
for name in ("JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
    assert "kernels" in os.environ[name]
with open("{log}", "a") as file:
    file.write(" ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
"""
PEER = """
import json, sys
if "--warm" in sys.argv:
    sys.exit()
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    eager, graph = {"state": "passed", "us": 12.5}, {"state": "failed", "error": "no"}
    json.dump({"items": {"eager": eager, "graph": graph}}, file)
"""
