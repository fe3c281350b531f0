"""Two builds compared by scripts/bench, with programs in their place that answer what they are told to."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DRIVER = os.path.join(ROOT, "benchmarks", "driver")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))

from driver import against, tables  # noqa: E402

ROOFS = """
    import sys
    for line in sys.stdin:
        print('{"gflops": 100.0, "gbs": 10.0}', flush=True)
"""
# A step takes as many milliseconds as `times` says of its workload.
STEPS = """
    import json, sys
    times = {times!r}
    for line in sys.stdin:
        request = json.loads(line)
        if "setup" in request:
            name = request["setup"]
            reply = {{"compile_s": 0.0}} if name in times else {{"error": "unknown workload " + name}}
        else:
            reply = {{"ms": times[name]}}
        print(json.dumps(reply), flush=True)
"""


class Arithmetic(unittest.TestCase):
    def test_ratios_are_of_pairs(self):
        # Every round is slower than the one before, for everybody: pairs do not see it.
        drift = [1, 2, 4, 8]
        found = against.compare({"new": [1.0 * d for d in drift], "old": [1.5 * d for d in drift],
                                 "again": [1.5 * d for d in drift]})
        self.assertEqual((found["ratio"], found["ratio_low"], found["ratio_high"]), (1.5, 1.5, 1.5))
        self.assertEqual((found["noise_ratio"], found["noise"]), (1, 1))
        self.assertEqual((found["new_ms"], found["old_ms"]), (3, 4.5))
        self.assertEqual(found["verdict"], "faster")

    def test_noise_is_what_nine_of_ten_rounds_stay_within(self):
        old = [1.0] * 11
        again = [1.0] * 8 + [1.1, 1 / 1.25, 10.0]  # up or down is the same, and one round of eleven is beyond
        found = against.compare({"new": [1 / 1.2] * 11, "old": old, "again": again})
        self.assertAlmostEqual(found["noise"], 1.25)
        self.assertEqual(found["noise_ratio"], 1)
        self.assertEqual(found["verdict"], "same")
        for new, verdict in [(1 / 1.3, "faster"), (1.2, "same"), (1.3, "slower")]:
            found = against.compare({"new": [new] * 11, "old": old, "again": again})
            self.assertEqual(found["verdict"], verdict)

    def test_a_median_beyond_the_noise_is_not_enough(self):
        new = [1.3, 1.3, 1.3, 0.9, 0.9]  # a quarter of the rounds and more says the contrary
        found = against.compare({"new": new, "old": [1.0] * 5, "again": [1.01] * 5})
        self.assertLess(found["ratio"], 1 / found["noise"])
        self.assertEqual(found["verdict"], "same")

    def test_quantiles_lie_between_values(self):
        self.assertEqual(against.quantile([3, 1, 2], 0.5), 2)
        self.assertEqual(against.quantile([1, 2], 0.25), 1.25)
        self.assertEqual(against.quantile([5], 0.9), 5)

    def test_every_order_comes_once_in_six_rounds(self):
        orders = {tuple(against.order(number)) for number in range(6)}
        self.assertEqual(len(orders), 6)
        self.assertTrue(all(sorted(o) == sorted(against.SIDES) for o in orders))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        new = {"b20": 2.0, "b128": 4.0, "tiny": 0.5, "tiny-output": 0.5}
        self.program("new", "bench_roofs", ROOFS)
        self.program("new", "bench_steps", STEPS.format(times=new))

    def program(self, folder, name, text):
        path = os.path.join(self.folder, folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\n" + textwrap.dedent(text))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def bench(self, *arguments):
        command = [sys.executable, DRIVER, "--programs", os.path.join(self.folder, "new"), *arguments]
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.folder)

    def refused(self, *arguments):
        """What is said in the one line of a run that measures nothing."""
        run = self.bench(*arguments)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, "")
        self.assertNotIn("Traceback", run.stderr)
        return run.stderr.splitlines()[-1]

    def test_rows_have_all_rounds(self):
        # As in a checkout, where a folder of sources has the name of the programs' folder.
        os.makedirs(os.path.join(self.folder, "old", "benchmarks"))
        self.program("old/build/release/benchmarks", "bench_steps", STEPS.format(times={"b20": 3.0}))
        file = os.path.join(self.folder, "result.json")
        run = self.bench("--ours", "--against", "old", "--only", "b", "--rounds", "4", "--json", file)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(file, encoding="utf-8") as text:
            result = json.load(text)
        self.assertEqual(set(result["versions"]), {"new", "old"})
        self.assertEqual([(row["workload"], row["form"]) for row in result["rows"]],
                         [("b20", "loop"), ("b20", "call"), ("b128", "loop"), ("b128", "call")])
        first, last = result["rows"][0], result["rows"][-1]
        self.assertEqual(first["rounds_ms"], {"new": [2.0] * 4, "old": [3.0] * 4, "again": [3.0] * 4})
        self.assertEqual((first["rounds"], first["ratio"], first["noise"]), (4, 1.5, 1))
        self.assertEqual((first["verdict"], first["batch"]), ("faster", 20))
        self.assertEqual(last["why"], "unknown workload b128")
        with open(os.path.join(self.folder, "result.md"), encoding="utf-8") as text:
            self.assertIn(tables.comparison(result), text.read())
        line = "| b20 | loop | 2 | 3 | 1.500 | 1.500 to 1.500 | 1.000 | 1.000 | **faster** |"
        self.assertIn(line, run.stdout)
        self.assertIn("not measured: unknown workload b128", run.stdout)

    def test_overhead_is_two_workloads(self):
        old = {"tiny": 0.5, "tiny-output": 0.25}
        self.program("old/benchmarks", "bench_steps", STEPS.format(times=old))
        file = os.path.join(self.folder, "result.json")
        only = ["--only", "overhead", "--rounds", "1", "--json", file]
        run = self.bench("--ours", "--against", "old", *only)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(file, encoding="utf-8") as text:
            rows = json.load(text)["rows"]
        self.assertEqual([(row["workload"], row["verdict"]) for row in rows],
                         [("tiny", "same")] * 2 + [("tiny-output", "slower")] * 2)

    def test_builds_that_cannot_be_compared_are_refused(self):
        os.makedirs(os.path.join(self.folder, "empty", "benchmarks"))
        said = self.refused("--ours", "--against", "empty", "--only", "b20")
        self.assertIn("empty: no bench_steps there, nor in build/release/benchmarks", said)
        self.assertIn("cmake --build --preset release --target benchmarks", said)
        said = self.refused("--ours", "--against", "absent", "--only", "b20")
        self.assertIn("absent: no bench_steps there", said)
        # One of two programs.
        self.program("old", "bench_steps", STEPS.format(times={}))
        self.assertIn("no bench_kernels in", self.refused("--ours", "--against", "old", "--only", "b20,g"))
        self.assertIn("add --ours", self.refused("--against", "old"))
        self.assertIn("does not measure busy", self.refused("--ours", "--against", "old", "--only", "busy"))


if __name__ == "__main__":
    unittest.main()
