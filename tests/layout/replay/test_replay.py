"""The parts of scripts/replay: what is left out of a corpus, and what is said about two sides."""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from replaying import compare, sides  # noqa: E402

SOURCE = textwrap.dedent("""\
    // A file.
    #include "corpus.h"

    namespace {

    Expr helper(int n,
                int m) {
        return n;
    }

    }  // namespace

    GRAPH(one) { b.output(helper(1)); }

    // Comment.
    GRAPH(two) {
        if (true) {
            b.output(helper(2));
        }
    }
    """)


def line_of(text):
    return next(n for n, line in enumerate(SOURCE.split("\n"), 1) if text in line)


class Leaving(unittest.TestCase):
    def test_a_graph_that_does_not_compile_is_left_out(self):
        text, lost = sides.without(SOURCE, [line_of("helper(2)")])
        self.assertEqual(lost, ["two"])
        self.assertNotIn("GRAPH(two)", text)
        self.assertIn("GRAPH(one)", text)
        self.assertEqual(text.count("\n"), SOURCE.count("\n"))  # lines keep their numbers

    def test_a_helper_and_a_graph_on_one_line(self):
        text, lost = sides.without(SOURCE, [line_of("return n"), line_of("GRAPH(one)")])
        self.assertEqual(lost, ["one"])
        self.assertNotIn("int m", text)
        self.assertIn("}  // namespace", text)

    def test_a_line_of_nothing_is_not_guessed_at(self):
        self.assertEqual(sides.without(SOURCE, [line_of("#include")]), (None, []))

    def test_the_whole_corpus_can_be_taken_apart(self):
        folder = os.path.join(ROOT, "tests", "corpus")
        graphs = 0
        for name in os.listdir(folder):
            if not name.endswith(".cpp"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            for number, line in enumerate(text.split("\n"), 1):
                if not line.startswith("GRAPH("):
                    continue
                graphs += 1
                graph = line[len("GRAPH("):line.index(")")]
                left, lost = sides.without(text, [number])
                self.assertEqual(lost, [graph])
                self.assertEqual(left.count("GRAPH("), text.count("GRAPH(") - 1)
        self.assertGreaterEqual(graphs, 40)

    def test_complaints_of_the_compiler_are_found(self):
        log = ("[1/2] Building\n/s/tests/corpus/a.cpp:12:5: error: 'cumsum' was not declared\n"
               "/s/tests/corpus/a.cpp:7:5: warning: unused\n"
               "/s/tests/corpus/b.cpp:3:1:   required from here\n/x/ops.h:3:1: error: no match\n")
        self.assertEqual(sides.errors_of(log, "/s"),
                         {"a.cpp": {12: "'cumsum' was not declared"}, "b.cpp": {3: "a template's error"}})


class Comparing(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.out = self.temporary.name

    def write(self, path, text):
        path = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def plan(self, side, graph, kernels=("kernel1 a", "kernel2 b"), ms=5.0, arena=64, **parts):
        folder = f"{side}/cpu/{graph}"
        for part in compare.PARTS:
            self.write(f"{folder}/{part}.txt", parts.get(part, part) + "\n")
        self.write(f"{folder}/helpers.txt", "helpers")
        for k, text in enumerate(kernels, 1):
            self.write(f"{folder}/kernels/{k:02}.txt", text)
        self.write(f"{folder}/numbers.txt", f"nodes 3\nlaunches 2\nkernels {len(kernels)}\n"
                   f"text_bytes {sum(map(len, kernels))}\narena_bytes {arena}\nmilliseconds {ms}\n")

    def report(self, unable=None):
        for side in ("old", "new"):
            self.write(f"{side}/run.json", json.dumps(
                {"commit": side * 10, "corpus": "c", "wish": side, "unable": unable or {} if side == "old" else {}}))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = compare.report(os.path.join(self.out, "old"), os.path.join(self.out, "new"), self.out)
        return code, printed.getvalue()

    def test_the_same(self):
        for side in ("old", "new"):
            self.plan(side, "g")
        code, text = self.report()
        self.assertEqual(code, 0)
        self.assertIn("g: same\n", text)
        self.assertIn("1 plans compared: 1 same", text)

    def test_other_numbers_of_kernels_are_no_other_texts(self):
        self.plan("old", "g")
        self.plan("new", "g", kernels=("kernel1 b", "kernel2 a"))
        self.assertIn("g: same\n", self.report()[1])

    def test_every_difference_has_its_word(self):
        self.plan("old", "g", ms=100)
        self.plan("new", "g", kernels=("kernel1 a", "kernel2 other", "kernel3 c"), ms=140, arena=128, storage="s",
                  schedule="t")
        code, text = self.report()
        self.assertEqual(code, 1)
        self.assertIn("g: storage schedule text time: 2 of 3 kernels new, kernels 2 -> 3, text 18 -> 31 B, "
                      "arena 64 -> 128 B, planned in 100 -> 140 ms", text)
        with open(os.path.join(self.out, "differences", "cpu", "g.diff"), encoding="utf-8") as file:
            self.assertIn("+s\n", file.read())

    def test_targets_that_differ_have_lines_of_their_own(self):
        for side in ("old", "new"):
            self.plan(side, "g")
            self.plan(side, "h")
            for target in ("gpu", "other"):
                os.makedirs(os.path.join(self.out, side, target))
                for graph in "gh":
                    shutil.copytree(os.path.join(self.out, side, "cpu", graph),
                                    os.path.join(self.out, side, target, graph))
        self.write("new/gpu/g/groups.txt", "others\n")
        text = self.report()[1]
        self.assertIn("g cpu, other: same\ng gpu: groups\nh: same\n", text)

    def test_small_changes_of_time_are_noise(self):
        self.plan("old", "g", ms=5)
        self.plan("new", "g", ms=9)
        self.plan("old", "h", ms=100)
        self.plan("new", "h", ms=125)
        self.assertEqual(self.report()[0], 0)

    def test_what_a_side_lacks_is_said(self):
        for side in ("old", "new"):
            self.plan(side, "g")
        self.plan("new", "scan")
        self.plan("new", "slow")
        self.write("old/stopped/slow.txt", "not planned within 120 s\n")
        self.write("old/cpu/g/error.txt", "ShapeError\n")
        code, text = self.report(unable={"scan": "'cumsum' was not declared"})
        self.assertEqual(code, 1)
        self.assertIn("scan: OLD cannot express it: 'cumsum' was not declared\n", text)
        self.assertIn("slow: OLD: not planned within 120 s\n", text)
        self.assertIn("g: error: the old side does not build it: ShapeError\n", text)


if __name__ == "__main__":
    unittest.main()
