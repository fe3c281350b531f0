"""Limits of time, what is missing, and the script itself."""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from support import ROOT, SCRIPT, InFolder

from gpu import commands, facts, parts, second, visit as visits


class Commands(InFolder):
    def test_a_limit_ends_children_too(self):
        mark = self.path("mark")
        begin = time.monotonic()
        ended = commands.run(["sh", "-c", f"(sleep 3; touch {mark}) & sleep 60"], 1)
        self.assertEqual((ended.kind, ended.passed), ("limit", False))
        self.assertIn("limit of 1 s", ended.how)
        self.assertLess(time.monotonic() - begin, 10)
        time.sleep(3)
        self.assertFalse(os.path.exists(mark))

    def test_a_crash_has_its_signal(self):
        ended = commands.run([sys.executable, "-c", "import os; os.abort()"], 20)
        self.assertEqual((ended.kind, ended.how), ("crash", "ended by signal 6 (SIGABRT)"))

    def test_what_does_not_start(self):
        ended = commands.run(["/nowhere/program"], 5)
        self.assertEqual((ended.kind, ended.passed), ("refused", False))
        self.assertIn("did not start", ended.how)

    def test_what_survives_sigkill_is_left_behind(self):
        class Stuck:
            pid, returncode = 2**22 + 1, None

            def wait(self, timeout=None):
                time.sleep(0.05)
                raise subprocess.TimeoutExpired("stuck", timeout)

        with mock.patch("subprocess.Popen", return_value=Stuck()):
            ended = commands.run(["stuck"], 0.1)
        self.assertEqual((ended.kind, ended.passed), ("hang", False))
        self.assertRegex(ended.how, "SIGKILL did not end it")

    def test_endless_output_ends(self):
        ended = commands.run(["yes"], 60)
        self.assertIn("printed more than", ended.how)
        self.assertLess(len(ended.text), 2 * commands.KEPT_OUTPUT)


class Budget(InFolder):
    def test_parts_keep_to_the_visit(self):
        made = self.visit(seconds=20)
        ran = []

        def slow(visit):
            ran.append(visit.part["part"])
            visit.add(visit.command("sleep", ["sleep", "60"], 60)[0])

        def hangs(visit):
            visit.add(visit.command("hang", ["sleep", "60"], 2)[0])

        def wrong(_):
            raise ValueError("a mistake")

        begin = time.monotonic()
        made.run_parts(
            [
                visits.Part("wrong", 5, wrong, ""),
                visits.Part("hangs", 5, hangs, ""),
                visits.Part("a", 5, slow, ""),
                visits.Part("b", 50, slow, ""),
                visits.Part("c", 5, slow, ""),
                visits.Part("gpu", 5, slow, "", hardware=True),
            ]
        )
        self.assertLess(time.monotonic() - begin, 20)
        found = {part["part"]: part for part in made.results.data["parts"]}
        self.assertEqual(ran, ["a", "b"])
        self.assertEqual(
            [found[name]["state"] for name in ("wrong", "hangs", "a", "b", "c", "gpu")],
            ["failed", "failed", "skipped", "skipped", "skipped", "skipped"],
        )
        self.assertEqual(
            [(fault["case"], fault["kind"]) for fault in made.results.data["faults"]], [("hang", "hang")]
        )
        self.assertIn("out of time: ended after its limit of 5 s", found["a"]["entries"][0]["why"])
        self.assertIn("ValueError: a mistake", found["wrong"]["entries"][0]["why"])
        self.assertIn("out of time", found["c"]["entries"][0]["why"])
        self.assertEqual(found["a"]["seconds"] // 1, 5)

    def test_a_part_alone_has_the_time_of_the_visit(self):
        made = self.visit(seconds=100)
        limits = []
        part = visits.Part("peers", 5, lambda visit: limits.append(visit.left()), "")
        made.run_parts([visits.Part("information", 5, part.run, ""), part])
        self.assertLess(limits[0], 6)
        self.assertGreater(limits[1], 60)
        made.run_parts([part, part])
        self.assertLess(limits[3], 6)

    def test_without_a_device_each_part_says_so(self):
        made = self.visit()
        made.no_device = "no driver"
        made.run_parts([visits.Part("kernel", 5, parts.kernel, "")])
        self.assertEqual(
            made.results.data["parts"][-1]["entries"],
            [{"name": "kernel", "state": "skipped", "why": "no device emulator: no driver"}],
        )


class Facts(InFolder):
    INFO = (
        "devices\n  cuda       not available: the CUDA runtime is not installed\nCUDA\n  driver     absent:"
        " libcuda.so.1: cannot open shared object file\n  cudart     13.0 (libcudart.so.13)\n"
    )

    def test_lines_of_bitale_info(self):
        self.assertEqual(facts.device_problem(self.INFO, "cuda"), "the CUDA runtime is not installed")
        self.assertIsNone(facts.device_problem(self.INFO, "emulator"))
        self.assertEqual(
            facts.missing_libraries(self.INFO), ["driver: libcuda.so.1: cannot open shared object file"]
        )

    def test_files_that_never_passed_come_first(self):
        def kept(name, date, where, *entries):
            path = self.path(name)
            core = [dict(zip(("name", "state", "not_run"), entry)) for entry in entries]
            data = {"visit": "first", "device": "cuda", "where": where, "date": date}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(dict(data, parts=[{"part": "core", "entries": core}, {"part": "nan"}]), file)
            return path

        passed = [("b", "passed", []), ("c", "passed", []), ("d", "passed", ["a case"]), ("e", "failed")]
        paths = [
            kept("old.json", "2026-01-01", None, *passed),
            kept("new.json", "2026-02-01", None, ("b", "passed", []), ("c", "skipped", [])),
            kept("emulated.json", "2026-03-01", "emulated libraries 13.1", ("a", "passed", [])),
            self.path("none.json"),
        ]
        found = facts.passed_before(paths, "cuda", None)
        self.assertEqual(found, {"b": "2026-02-01", "c": "2026-01-01"})
        orders = {tuple(parts.in_turn(["e", "d", "c", "b", "a"], found, str(seed))) for seed in range(40)}
        self.assertEqual({order[3:] for order in orders}, {("c", "b")})
        self.assertEqual(len({order[:3] for order in orders}), 6)
        again = {tuple(parts.in_turn(names, {}, "7")) for names in ("abcde", "edcba")}
        self.assertEqual(len(again), 1)

    def test_an_old_libc_is_told_in_one_line(self):
        ended = commands.Ended(
            [],
            1,
            "exit status 1",
            0,
            "x: /lib/libm.so.6: version `GLIBC_2.34' not found (required by x)\n"
            "x: /lib/libc.so.6: version `GLIBC_2.136' not found (required by x)\n",
        )
        self.assertRegex(
            facts.why_not_starting(ended, {}),
            r"^libc is too old: the programs want glibc 2\.136, this machine has \S+$",
        )
        silent = commands.Ended([], None, "did not start: no such file", 0, "", "refused")
        self.assertIn("libc is too old", facts.why_not_starting(silent, {"needs_libc": "2.999"}))
        self.assertIn("do not start here", facts.why_not_starting(silent, {"needs_libc": "2.2"}))

    def test_only_a_commit_is_a_commit(self):
        def git(*words):
            words = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", self.path("checkout"), *words]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

        options = argparse.Namespace(root=self.path("checkout"), packed={})
        os.makedirs(self.path("checkout", ".git"))  # of a worktree whose repository is elsewhere, say
        with mock.patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": self.folder}):
            self.assertIsNone(facts.machine(options)["commit"])
            git("init", "-q")
            git("commit", "-q", "--allow-empty", "-m", "first")
            self.assertRegex(facts.machine(options)["commit"], "^[0-9a-f]{40}$")
            # Git itself fails.
            with mock.patch.dict(os.environ, {"GIT_CONFIG_GLOBAL": self.path("config")}):
                with open(self.path("config"), "w", encoding="utf-8") as file:
                    file.write("[broken\n")
                self.assertIsNone(facts.machine(options)["commit"])

    def test_a_visit_without_programs_that_start(self):
        made = self.visit()
        self.program("bitale-info", 'import sys; print("version `GLIBC_2.99\' not found"); sys.exit(1)')
        made.run_parts(
            [
                visits.Part("information", 20, parts.information, "", device=False),
                visits.Part("kernel", 5, parts.kernel, ""),
            ]
        )
        self.assertIn("wants glibc 2.99".replace("wants", "want"), made.no_device)
        self.assertEqual([part["state"] for part in made.results.data["parts"][1:]], ["failed", "skipped"])


class Documents(unittest.TestCase):
    def test_the_tables_of_parts_are_those_of_the_script(self):
        with open(os.path.join(ROOT, "docs", "gpu-visits.md"), encoding="utf-8") as file:
            page = file.read()
        for visit, known in (("first", parts.FIRST), ("second", second.SECOND)):
            lines = page.split(f"| `--{visit}` | seconds | answers |\n|---|---|---|\n")[1].split("\n\n")[0]
            told = []
            for line in lines.splitlines():
                names, seconds = (cell.strip().split(", ") for cell in line.split("|")[1:3])
                told += zip(names, map(int, seconds))
            self.assertEqual(told, [(part.name, part.limit) for part in known])


class Counters(InFolder):
    ROWS = [
        {"name": "k_by_bytes", "us": 100.0, "bytes": 10_000_000, "flops": 0},  # 10 us: 10 times
        {"name": "k_by_flops", "us": 300.0, "bytes": 8, "flops": 1_000_000_000},  # 100 us: 3 times
        {"name": "k_node", "us": 20.0, "bytes": 8, "flops": 8},  # 1 us: 20 times
        {"name": "library", "us": 1000.0, "bytes": 8, "flops": 8},
    ]
    KERNELS = [{"phases": [{"entry": row["name"]}]} for row in ROWS[:3]] + [{"by_library": True}]
    FIRST = {
        "ceilings": {"copy": 1000.0, "fma": 10.0, "graph_node": 1.0},
        "parts": [
            {
                "part": "times",
                "entries": [
                    {
                        "result": {
                            "workload": "a",
                            "items": {"build": {"kernels": KERNELS}, "profile": {"rows": ROWS}},
                        }
                    }
                ],
            }
        ],
    }

    def test_furthest_from_bytes_and_operations(self):
        self.assertEqual(
            [(each["kernel"], each["ratio"], each["workload"]) for each in second.furthest(self.FIRST)],
            [("k_by_flops", 3.0, "a"), ("k_by_bytes", 10.0, "a"), ("k_node", 20.0, "a")],
        )
        self.assertEqual(len(second.furthest(self.FIRST, 2)), 2)
        self.assertEqual(second.furthest({}), [])

    def test_bytes_that_fit_into_caches_have_the_rate_of_caches(self):
        sizes = [{"bytes": 1_000_000, "GB_s": 5000.0}, {"bytes": 100_000_000, "GB_s": 2000.0}]
        ceilings = {"copy": 2000.0, "copy_by_size": sizes}
        for bytes_, rate in ((2_000_000, 5000), (2_000_001, 2000), (10**9, 2000)):
            self.assertEqual(second.copy_rate(bytes_, ceilings), rate)
        self.assertEqual(second.limit_us({"bytes": 1_000_000}, ceilings), 0.2)

    def test_counters_of_the_profiler(self):
        text = (
            '==PROF== Connected\nour line\n"ID","Process ID","Section Name","Metric Name","Metric'
            ' Unit","Metric Value"\n"0","12","Speed Of'
            ' Light","Duration","us","12.3"\n"0","12","Rules","","",""\n'
        )
        self.assertEqual(
            second.read_counters(text),
            [
                {
                    "kernel": "",
                    "section": "Speed Of Light",
                    "metric": "Duration",
                    "unit": "us",
                    "value": "12.3",
                }
            ],
        )
        self.assertEqual(second.read_counters("==ERROR== no permission"), [])


class Script(InFolder):
    def run_script(self, *words):
        return subprocess.run(
            [sys.executable, SCRIPT, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )

    def test_the_former_options_name_the_new_ones(self):
        for words in (["--suite", "--out", self.folder], ["--bench", "--out", self.folder]):
            done = self.run_script(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("use gpu_check --first --out DIR", done.stdout)

    def test_words_that_make_no_sense(self):
        self.assertIn("what to do", self.run_script("--first", "--second", "--out", self.folder).stdout)
        self.assertIn("what to do", self.run_script("--first").stdout)
        self.assertIn(
            "no part cpu; it has information, kernel",
            self.run_script("--first", "--out", self.folder, "--part", "cpu").stdout,
        )

    def test_the_first_visit_that_the_second_is_after(self):
        loader = importlib.machinery.SourceFileLoader("gpu_check_script", SCRIPT)
        script = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(script)
        script.ROOT = self.folder
        self.program("bitale-info", "")
        times = [{"part": "times", "state": "passed", "entries": []}]

        def saved(path, date, **more):
            about = {"visit": "first", "device": "cuda", "where": None, "date": date, "parts": times, **more}
            with open(self.path(*path), "w", encoding="utf-8") as file:
                json.dump(about, file)
            return self.path(*path)

        def after(**more):
            options = argparse.Namespace(
                build=self.path("build"), cache=None, emulated=None, device="cuda", visit="second", after=None
            )
            vars(options).update(more)
            script.locate(options, self.folder)
            return options.after

        folder = ("benchmarks", "results")
        self.assertIsNone(after())
        old = saved((*folder, "b.json"), "2030-01-02T00:00:00+00:00")
        with open(self.path(*folder, "broken.json"), "w", encoding="utf-8") as file:
            file.write("[1")
        with open(self.path(*folder, "list.json"), "w", encoding="utf-8") as file:
            file.write("[1]")
        saved((*folder, "second.json"), "2030-01-09T00:00:00+00:00", visit="second")
        saved((*folder, "emulated.json"), "2030-01-09T00:00:00+00:00", where="emulated libraries 13.1")
        saved((*folder, "untimed.json"), "2030-01-09T00:00:00+00:00", parts=[])
        self.assertEqual(after(), old)
        kept = saved(("build", "gpu_pack", "first.json"), "2030-01-03T00:00:00+00:00")
        self.assertEqual(after(), kept)
        new = saved((*folder, "a.json"), "2030-01-04T00:00:00+00:00")
        self.assertEqual(after(), new)
        self.assertEqual(after(after="named.json"), "named.json")

    def test_results_are_not_overwritten(self):
        self.program("bitale-info", "")
        with open(self.path("out", "results.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        done = self.run_script("--first", "--build", self.path("build"), "--out", self.path("out"))
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))
        self.assertIn("holds the results of another visit", done.stdout)

    def test_a_visit_outlives_whoever_reads_what_it_prints(self):
        self.program("bitale-info", "print('devices')")
        self.program("gpu_probe", "")
        command = [sys.executable, SCRIPT, "--first", "--device", "emulator", "--part", "kernel"]
        command += ["--build", self.path("build"), "--out", self.path("out")]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
            process.stdout.close()
            said = process.stderr.read()
        with open(self.path("out", "results.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual((process.returncode, said, data["finished"]), (1, "", True))
        self.assertEqual([part["part"] for part in data["parts"]], ["information", "kernel"])
        self.assertTrue(self.holds(self.path("out", "log.txt"), "gpu_probe said nothing of kernel"))

    @staticmethod
    def holds(path, text):
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as file:
            return text in file.read()

    def test_a_visit_that_is_ended_leaves_whole_files(self):
        self.program("bitale-info", "import time; print('devices', flush=True); time.sleep(60)")
        process = subprocess.Popen(
            [
                sys.executable,
                SCRIPT,
                "--first",
                "--device",
                "emulator",
                "--build",
                self.path("build"),
                "--out",
                self.path("out"),
            ],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        path = self.path("out", "results.json")
        end = time.monotonic() + 30
        while time.monotonic() < end and not self.holds(path, "information"):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=30) and process.returncode), 1)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual(
            (data["finished"], data["aborted"], data["parts"][0]["part"]), (False, "SIGTERM", "information")
        )
        self.assertTrue(os.path.exists(self.path("out", "texts.tar.xz")))
