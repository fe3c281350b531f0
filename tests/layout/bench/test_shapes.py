"""The rows (h) of scripts/bench, with programs in the place of ours and of the peer."""

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

from driver import peers, shapes  # noqa: E402

with open(os.path.join(ROOT, "benchmarks", "shapes.json"), encoding="utf-8") as file:
    SHAPES = json.load(file)["shapes"]
OF_PRODUCTS = ("conv", "conv_pool", "product", "distances", "batched", "weighted_mean", "attention", "dequantized",
               "integer_product", "covariance", "k_means", "logistic", "windows")

ROOFS = """
    import sys
    for line in sys.stdin:
        print('{"gflops": 100.0, "gbs": 10.0}', flush=True)
"""
# max-512 is written, as one byte; argmax-512 never gets built, by a child that would go on by itself.
OURS = """
    import json, subprocess, sys
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("setup") == "argmax-512":
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            open({pid!r}, "w").write(str(child.pid))
            child.wait()
        if request.get("setup") == "sum-split":
            reply = {{"error": "ShapeError: no"}}
        elif "setup" in request:
            name, reply = request["setup"], {{"compile_s": 0.5, "compile_cpu_s": 0.75, "kernels": 1}}
        elif "write" in request:
            open(request["write"], "w").write(name)
            reply = {{}}
        elif "peak" in request:
            reply = {{"peak_mb": 60.0, "bare_mb": 20.0}}
        else:
            reply = {{"ms": {{"max-4096": 2.0, "max-split": 5.0}}.get(name, 1.0)}}
        print(json.dumps(reply), flush=True)
"""
# Twice as slow as we are; our results are the same but those of max-split.
PEER = """
    import json, sys
    for line in sys.stdin:
        request = json.loads(line)
        if "version" in request:
            reply = {"version": "1"}
        elif "peak" in request:
            reply = {"peak_mb": 500.0, "bare_mb": 300.0}
        elif "setup" in request:
            name, reply = request["setup"], {"setup_s": 0.1, "loss": 0}
            if "compare" in request:
                assert open(request["compare"]).read() == name
                reply["difference"] = 0.5 if name == "max-split" else 0.0
        else:
            reply = {"ms": 4.0 if request["form"] == "eager" else 40.0}
        print(json.dumps(reply), flush=True)
"""


class Arithmetic(unittest.TestCase):
    def test_every_row_says_what_it_needs(self):
        for name, row in SHAPES.items():
            operations, size, _ = shapes.cost(row)
            self.assertGreater(size, 0, name)
            self.assertEqual(operations > 0, row["op"] in OF_PRODUCTS, name)

    def test_rows_are_like_rows_that_there_are(self):
        for name, row in SHAPES.items():
            for like in row.get("like", []):
                self.assertIn(like, SHAPES)
                self.assertNotEqual(like, name)

    def test_reductions_read_all_and_write_what_is_left(self):
        of = lambda **row: shapes.cost({"op": "reduce", "how": "sum", "shape": [2, 3, 4, 5]} | row)
        self.assertEqual(of(axes=[1, 3]), (0, 4 * (120 + 8), True))
        self.assertEqual(of(axes=[0]), (0, 4 * (120 + 60), False))
        self.assertEqual(of(axes=[0], turned=[3, 0, 1, 2])[1], 4 * (120 + 24))
        self.assertEqual(of(axes=[2], **{"as": [2, 3, 20]})[1], 4 * (120 + 6))
        self.assertEqual(of(axes=[3], how="argmax")[1], 4 * 120 + 8 * 24)
        self.assertEqual(of(axes=[3], dtype="uint8")[1], 120 + 8 * 24)
        self.assertEqual(of(axes=[3], dtype="uint8", how="mean_scaled")[1], 120 + 4 * 24)

    def test_convolutions_count_their_sums(self):
        row = {"op": "conv", "shape": [1, 8, 7, 7], "filters": 4, "kernel": 3, "stride": 2, "pad": 1}
        self.assertEqual(shapes.cost(row)[:2], (2 * 4 * 16 * 72, 4 * (392 + 288 + 64)))
        self.assertEqual(shapes.cost(row | {"groups": 4})[0], 2 * 4 * 16 * 18)
        self.assertEqual(shapes.cost(row | {"pad": 2, "dilation": 2, "stride": 1})[0], 2 * 4 * 49 * 72)

    def test_forms_have_the_styles_of_their_op(self):
        titles = lambda name: [form.title() for form in peers.shape_forms(SHAPES[name])]
        self.assertEqual(titles("sum-rows"), ["eager", "compile"])
        self.assertEqual(titles("lookup-step"), ["eager", "eager sparse", "compile step"])
        self.assertEqual(titles("covariance"), ["eager", "eager chunks", "compile"])


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.child = os.path.join(self.folder, "child")
        self.program("bench_roofs", ROOFS)
        self.program("bench_shapes", OURS.format(pid=self.child))
        self.program("peers/bin/python", PEER)

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as script:
            script.write(f"#!{sys.executable}\n" + textwrap.dedent(text))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def bench(self, *arguments):
        """The rows by their names, and the table."""
        file = os.path.join(self.folder, "result.json")
        command = [sys.executable, DRIVER, "--programs", self.folder, "--rounds", "2", "--json", file]
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
                       "BITALE_PEERS": os.path.join(self.folder, "peers")}
        run = subprocess.run(command + list(arguments), capture_output=True, text=True, env=environment,
                             cwd=self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(file, encoding="utf-8") as text:
            result = json.load(text)
        return {row["workload"]: row for row in result["rows"] if row["peer"] != "torch compile"}, run.stdout

    def line_of(self, table, name):
        return next(line for line in table.splitlines() if line.startswith(f"| {name} "))

    def test_a_row_has_a_peer_a_like_and_a_check(self):
        rows, table = self.bench("--only", "max-4096,max-split,max-merged")
        first, split = rows["max-4096"], rows["max-split"]
        self.assertEqual((first["ours_ms"], first["peer_ms"], first["ratio"]), (2.0, 4.0, 2.0))
        self.assertEqual((first["bytes"], first["flops"]), (4 * (4 << 20) + 4096, 0))
        self.assertIsNone(first["like_ratio"])
        self.assertEqual((first["check"], first["difference"]), ("same", 0))
        self.assertEqual((split["like"], split["like_ratio"]), (["max-4096"], 2.5))
        self.assertEqual((split["check"], split["difference"]), ("differs", 0.5))
        self.assertEqual(rows["max-merged"]["like_ratio"], 0.5)
        self.assertIn("| 2.50 | 0.5 | 4 (0.80) |", self.line_of(table, "max-split"))
        self.assertIn("**differs** (5e-01)", self.line_of(table, "max-split"))

    def test_a_row_that_is_not_built_in_time_says_so(self):
        rows, table = self.bench("--only", "argmax-512,max-512", "--build-limit", "8")
        row = rows["argmax-512"]
        self.assertEqual((row["ours_ms"], row["ours_why"]), (None, "not built within 8 s"))
        self.assertEqual((row["peer_ms"], row["ratio"]), (4.0, None))
        self.assertIn("not built within 8 s", self.line_of(table, "argmax-512"))
        self.assertEqual(rows["max-512"]["ours_ms"], 1.0)  # the rows after it are measured
        with open(self.child, encoding="utf-8") as text:
            self.assertFalse(self.runs(int(text.read())))

    def runs(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as text:
                return text.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def test_a_row_that_fails_says_why(self):
        rows, _ = self.bench("--only", "sum-split")
        self.assertEqual(rows["sum-split"]["ours_why"], "not built: ShapeError: no")

    def test_memory_is_that_of_a_process_for_each_form(self):
        rows, table = self.bench("--only", "covariance")
        memory = rows["covariance"]["memory_mb"]
        self.assertEqual(set(memory), {"ours", "eager", "eager chunks", "compile"})
        self.assertEqual(memory["ours"]["peak_mb"], 60.0)
        self.assertIn("**60**, eager 200", self.line_of(table, "covariance"))

    def test_without_peers_there_is_no_check(self):
        rows, table = self.bench("--ours", "--only", "max-4096")
        self.assertNotIn("check", rows["max-4096"])
        self.assertTrue(self.line_of(table, "max-4096").endswith("| - | - |"))


if __name__ == "__main__":
    unittest.main()
