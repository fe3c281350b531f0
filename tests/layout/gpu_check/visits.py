"""Whole visits to the emulator, with and without planted faults: visits.py BUILD quick|complete."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from support import SCRIPT

from gpu import results

BUILD = os.path.abspath(sys.argv[1])
COMPLETE = sys.argv[2:3] == ["complete"]
EMULATED = "13.1"
MOST = 10 << 20


class Visit:
    """One run of gpu_check and what it left."""

    def __init__(self, out, words, fault=None, script=None):
        begin = time.monotonic()
        environment = dict(os.environ)
        environment.pop("BITALE_EMULATED_FAULT", None)
        if fault:
            environment["BITALE_EMULATED_FAULT"] = fault
        cache = os.path.join(BUILD, "kernel_cache")
        own = [script] if script else [SCRIPT, "--build", BUILD, "--cache", cache]
        done = subprocess.run(
            [sys.executable, *own, "--out", out, *words],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
        self.seconds = time.monotonic() - begin
        self.status, self.said = done.returncode, done.stdout
        self.sizes = {name: os.path.getsize(os.path.join(out, name)) for name in os.listdir(out)}
        with open(os.path.join(out, "results.json"), encoding="utf-8") as file:
            self.data = json.load(file)
        self.parts = {part["part"]: part for part in self.data["parts"]}
        self.faults = self.data["faults"]

    def states(self):
        return {name: part["state"] for name, part in self.parts.items()}

    def why(self, part):
        return " ".join(entry.get("why", "") for entry in self.parts[part]["entries"])


class Visits(unittest.TestCase):
    def visit(self, *words, fault=None, emulated=EMULATED, seconds=300, script=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        words = [*words, "--emulated", emulated, "--seconds", str(seconds)]
        made = Visit(folder.name, words, fault, script)
        self.assertEqual(sorted(made.sizes), sorted(results.NAMES), made.said)
        self.assertLessEqual(max(made.sizes.values()), MOST)
        self.assertLess(made.seconds, seconds + 5, made.said)
        self.assertTrue(made.data["finished"])
        return made

    def named(self, fault, kind):
        """The fault names its kernel, a phase and the user's lines."""
        self.assertEqual(fault["kind"], kind)
        self.assertRegex(fault["kernel"], r"^k_[0-9a-f]+")
        self.assertGreaterEqual(fault["phase"], 1)
        self.assertTrue(fault["lines"], fault)
        for line in fault["lines"]:
            self.assertRegex(line, r"\.(cpp|h):\d+$")

    def everything_passed(self, found):
        """But for what wants a GPU."""
        bad = {name for name, state in found.states().items() if state != "passed"}
        self.assertEqual((bad, found.status), ({"peers"}, 0), found.said)

    def engines_are_timed(self, found, names):
        """Each call has engines that qualify, with times; one of them is what Bitale takes."""
        self.assertEqual([entry["name"] for entry in found.parts["engines"]["entries"]], names)
        for entry in found.parts["engines"]["entries"]:
            self.assertTrue(entry["result"]["calls"])
            for call in entry["result"]["calls"]:
                timed = [each for each in call["engines"] if each["qualifies"]]
                self.assertGreater(len(timed), 1)
                self.assertEqual(sum(each["chosen"] for each in timed), 1, call)
                for each in timed:
                    self.assertGreater(each["us"], 0)
        for line in found.parts["engines"]["table"][1]:
            self.assertNotIn(None, line)

    def hardware_alone_is_skipped(self, found, names):
        for name in names:
            self.assertEqual(found.parts[name]["state"], "skipped")
            self.assertIn("needs a GPU", found.why(name))


@unittest.skipIf(COMPLETE, "the quick visits run without it")
class Quick(Visits):
    def test_a_first_visit(self):
        found = self.visit("--first", "--quick")
        self.hardware_alone_is_skipped(found, ["peers"])
        self.everything_passed(found)
        self.assertTrue(any("--reduced" in line for line in found.data["reduced"]))
        self.assertEqual(found.faults, [])

    def test_a_second_visit(self):
        found = self.visit("--second", "--quick")
        self.assertEqual(found.status, 0, found.said)
        self.hardware_alone_is_skipped(found, ["sanitizers"])
        self.assertIn("--after FILE", found.why("counters"))
        self.assertEqual(
            {name for name, state in found.states().items() if state == "passed"},
            {"information", "engines", "libraries", "graphs", "cpu"},
            found.said,
        )
        self.engines_are_timed(found, ["b128", "b128 tf32"])

    def test_an_illegal_address(self):
        found = self.visit("--first", "--quick", "--part", "kernel", "--part", "steps", fault="illegal:#1")
        self.assertEqual((found.status, len(found.faults)), (1, 2), found.said)
        self.assertEqual((found.faults[0]["case"], found.faults[0]["kernel"]), ("kernel", "probe_axpy"))
        self.named(found.faults[1], "sticky")
        self.assertIn("illegal", found.faults[1]["message"])
        self.assertEqual(found.faults[1]["case"], "a: logistic, batch 600")

    def test_a_wrong_result(self):
        found = self.visit("--first", "--quick", "--part", "steps", fault="wrong:#3")
        self.assertEqual(
            (found.status, len(found.faults), found.states()["steps"]), (1, 1, "failed"), found.said
        )
        self.named(found.faults[0], "wrong")
        self.assertEqual((found.faults[0]["case"], found.faults[0]["element"]), ("a: logistic, batch 600", 0))
        self.assertNotEqual(found.faults[0]["got"], found.faults[0]["expected"])
        self.assertEqual(found.faults[0]["differ"], 1)
        self.assertIn(found.faults[0]["kernel"] + " is wrong in ", found.why("steps"))
        self.assertRegex(found.why("steps"), r"check: .* disagree: .*(differ|steps)")
        self.assertEqual(
            sorted(found.parts["steps"]["entries"][0]["narrowed"]), ["disable=cudnn", "graphs=off"]
        )

    def test_a_launch_that_never_ends(self):
        found = self.visit(
            "--first", "--quick", "--part", "kernel", "--part", "steps", fault="hang:#1", seconds=140
        )
        self.assertEqual((found.status, len(found.faults)), (1, 2), found.said)
        self.assertEqual((found.faults[0]["case"], found.faults[0]["kernel"]), ("kernel", "probe_axpy"))
        self.named(found.faults[1], "hang")

    @unittest.skipIf(
        os.path.exists("/proc/driver/nvidia"), "here is a driver, so CUDA's own library would do"
    )
    def test_a_library_that_is_missing(self):
        folder = os.path.join(BUILD, "emulated_cuda", "without-libcudart")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(
            os.path.join(BUILD, "emulated_cuda", EMULATED),
            folder,
            ignore=shutil.ignore_patterns("libcudart*"),
        )
        self.addCleanup(shutil.rmtree, folder)
        found = self.visit("--first", "--quick", emulated="without-libcudart")
        self.assertEqual(found.status, 1)
        # A CUDA that is installed here is found then, and wants a driver.
        self.assertTrue(
            [
                line
                for line in found.data["missing"]
                if re.match(r"device cuda: .*CUDA runtime.*libcuda", line)
            ],
            found.data["missing"],
        )
        self.assertEqual(
            {state for name, state in found.states().items() if name != "information"}, {"skipped"}
        )

    def test_a_symbol_that_is_missing(self):
        found = self.visit("--first", "--quick", emulated=f"{EMULATED}-without-cudaLaunchKernelExC")
        self.assertEqual(found.status, 1)
        self.assertTrue(
            any("cudaLaunchKernelExC" in line for line in found.data["missing"]), found.data["missing"]
        )

    def test_a_visit_keeps_to_its_time(self):
        found = self.visit("--first", "--quick", fault="hang:probe_axpy", seconds=18)
        self.assertEqual(found.states()["information"], "passed")
        for name in ("kernel", "graph", "steps", "times", "peers"):
            self.assertEqual(found.states()[name], "skipped", found.said)
            self.assertIn("out of time", found.why(name))

    def test_nothing_of_cuda(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        found = Visit(folder.name, ["--first", "--device", "cuda"])
        self.assertEqual(found.status, 1)
        self.assertTrue(
            [line for line in found.data["missing"] if re.match(r"device cuda: .*(driver|CUDA)", line)]
        )


@unittest.skipUnless(COMPLETE, "scripts/test --all runs the complete visits")
class Complete(Visits):
    SECONDS = 540  # of a visit to a GPU

    def test_a_first_and_a_second_visit(self):
        found = self.visit("--first", seconds=self.SECONDS)
        self.hardware_alone_is_skipped(found, ["peers"])
        self.everything_passed(found)
        self.assertEqual(len(found.parts["steps"]["entries"]), 8)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(found.data, file)
            file.flush()
            after = self.visit("--second", "--after", file.name, seconds=self.SECONDS)
        self.assertEqual(after.status, 0, after.said)
        self.hardware_alone_is_skipped(after, ["sanitizers", "counters"])
        self.assertEqual(len(after.parts["counters"]["furthest"]), 5)
        self.assertEqual(len(after.parts["graphs"]["entries"]), 16)
        steps = ["d", "e64", "e", "b128"]
        self.engines_are_timed(after, steps + [f"{name} tf32" for name in steps])

    def test_a_fault_in_the_body_of_a_while_node(self):
        """Later parts launch a graph a step, and all of them pass."""
        found = self.visit("--first", fault="illegal:probe_turn", seconds=self.SECONDS)
        self.assertEqual(
            {name: state for name, state in found.states().items() if state != "passed"},
            {"while": "failed", "peers": "skipped"},
            found.said,
        )
        self.assertEqual((len(found.faults), found.faults[0]["kernel"]), (1, "probe_turn"))
        self.assertEqual(found.data["fallbacks"], ["graphs=step"])
        self.assertEqual(found.faults[0]["cured"], {"graphs=step": ["right", "right"]})
        turn = next(entry for entry in found.parts["ceilings"]["entries"] if entry["name"] == "while_turn")
        self.assertEqual((turn["state"], turn["why"]), ("skipped", "programs run with graphs=step"))

    def test_a_fault_at_the_end_of_each_step_of_a_loop(self):
        """It is there with and without graphs: no flag cures it, so none is taken."""
        found = self.visit("--first", "--part", "steps", fault="illegal:bitale_advance", seconds=self.SECONDS)
        self.assertEqual(found.states()["steps"], "failed")
        self.assertEqual({fault["kernel"] for fault in found.faults}, {"bitale_advance"}, found.said)
        self.assertEqual(len(found.faults), 8)
        self.assertEqual(found.data["fallbacks"], [])

    def test_a_fault_in_a_case_of_the_suite(self):
        """Cases with fewer launches pass, each other one names its own kernel."""
        found = self.visit("--first", "--quick", "--part", "core", fault="illegal:#12")
        self.assertEqual((found.status, found.states()["core"]), (1, "failed"), found.said)
        for fault in found.faults:
            self.assertEqual((fault["part"], fault["kind"], fault["phase"]), ("core", "sticky", 2), fault)
            self.assertRegex(fault["kernel"], r"^k_[0-9a-f]+_finish$")
        entry = found.parts["core"]["entries"][-1]
        self.assertTrue(found.faults)
        self.assertEqual(list(entry["failures"]), [fault["case"] for fault in found.faults])
        self.assertGreater(entry["cases"], len(found.faults))

    def test_an_archive_without_a_checkout(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pack = [sys.executable, SCRIPT, "--pack", folder.name, "--build", BUILD, "--newer-glibc"]
        subprocess.run(pack, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "xf", "gpu_pack.tar.xz"], cwd=folder.name, check=True)
        packed = os.path.join(folder.name, "gpu_pack")
        # What the machine itself would have.
        shutil.copytree(os.path.join(BUILD, "emulated_cuda"), os.path.join(packed, "emulated_cuda"))
        script = os.path.join(packed, "scripts", "gpu_check")
        found = self.visit("--first", "--quick", seconds=self.SECONDS, script=script)
        self.everything_passed(found)
        self.assertEqual(found.data["programs"], ".")
        self.assertTrue(os.path.exists(os.path.join(packed, "first.json")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
