"""What later parts do without: decided by failures that come again, and by flags that cure them, twice."""

import os
import tempfile
from unittest import mock

from support import InFolder

from gpu import commands, fallbacks, parts, second, table, watching

# Stands for gpu_probe and gpu_steps. Its processes count: PLAN(number, name, flags) says what one does.
COUNTED = """
    import json, os, sys, time
    words, flags = sys.argv, os.environ["BITALE_FLAGS"].split(",")
    name = words[words.index("--workload" if "--workload" in words else "--only") + 1]
    with open("began", "a+") as file:
        file.write(name + "\\n")
        file.seek(0)
        number = file.read().split("\\n").count(name)
    {plan}
    with open(words[words.index("--json") + 1], "w") as file:
        json.dump({{"items": {{name: {{"state": "passed"}}, "check": {{"state": "passed"}}}}}}, file)
"""


class Deciding(InFolder):
    def visited(self, plan, names, seconds=90, limit=6, workloads=("a",)):
        made = self.visit(device="cuda", seconds=seconds)
        made.tools = {"compute-sanitizer": None}
        for program in ("gpu_probe", "gpu_steps"):
            self.program(program, COUNTED.format(plan=plan))
        whole = made.command
        made.command = lambda name, command, _, **more: whole(name, command, limit, **more)
        with mock.patch("gpu.parts.workloads", return_value=workloads):
            made.run_parts([part for part in parts.FIRST if part.name in names])
        return made.results.data, {part["part"]: part for part in made.results.data["parts"]}

    def test_a_slow_start_decides_nothing(self):
        """The first call of cuDNN sleeps for longer than it may take."""
        slow = 'if name == "cudnn" and number == 1: time.sleep(40)'
        data, _ = self.visited(slow, ("libraries", "steps"))
        self.assertEqual(data["fallbacks"], [])
        fault = data["faults"][0]
        self.assertEqual((fault["case"], fault["kind"], fault["again"]), ("cudnn", "hang", "passes"))
        self.assertEqual(fault["alone"], "passes alone with launches=wait")
        self.assertTrue(any("nothing by disable=cudnn" in line for line in data["reduced"]), data["reduced"])
        rows = [line for line in table.markdown(data).split("\n") if line.startswith("| libraries | cudnn |")]
        self.assertIn("passes alone with launches=wait; the same again: passes", rows[0])

    def test_a_step_that_fails_once_decides_nothing(self):
        once = 'if name == "d" and number == 1: os.abort()'
        data, found = self.visited(once, ("steps",), workloads=("a", "d"))
        self.assertEqual(data["fallbacks"], [])
        self.assertEqual((found["steps"]["state"], data["faults"][0]["again"]), ("failed", "right"))
        self.assertIn("right once more", found["steps"]["entries"][1]["why"])

    def test_a_probe_that_fails_once_decides_nothing(self):
        for name, part in (("graph", "graph"), ("while", "while")):
            data, _ = self.visited(f'if name == "{name}" and number == 1: sys.exit(1)', (part,))
            self.assertEqual(data["fallbacks"], [])

    def test_a_part_that_had_no_time_decides_nothing(self):
        with mock.patch.object(parts, "probe", lambda visit, name: visit.skip(name, "out of time")):
            data, _ = self.visited("", ("graph", "while"))
        self.assertEqual((data["fallbacks"], data["faults"]), ([], []))

    def test_a_flag_that_does_not_cure_is_not_taken(self):
        data, _ = self.visited('if name in ("graph", "a"): os.abort()', ("graph",))
        self.assertEqual(data["fallbacks"], [])
        self.assertTrue(any("nothing by graphs=off" in line for line in data["reduced"]), data["reduced"])

    def test_a_flag_has_to_cure_twice(self):
        """It seems to be cured by graphs=step, once."""
        plan = """
    if name == "a" and "graphs=off" not in flags:
        if number != 4: os.abort()"""
        data, found = self.visited(plan, ("steps",))
        self.assertEqual(data["fallbacks"], ["graphs=off"])
        self.assertEqual(data["faults"][0]["cured"]["graphs=off"], ["right", "right"])
        self.assertEqual(data["faults"][0]["cured"]["graphs=step"], ["right", "ended by signal 6 (SIGABRT)"])
        self.assertIn("is right 2 times", data["reduced"][-1])
        self.assertIn("SIGABRT", found["steps"]["entries"][0]["why"])

    def test_where_time_is_short_once_is_enough_and_is_told(self):
        made = self.visit(device="cuda")
        said = fallbacks.cure(made, "a", ["true"], "graphs=off", 2)
        self.assertEqual(said, ["right", "right"])
        left = mock.Mock(side_effect=[30, 0])
        with mock.patch.object(made, "left", left):
            said = fallbacks.cure(made, "a", ["true"], "graphs=off", 2)
        self.assertEqual(said, ["right"])
        fallbacks.settle(made, "graphs=off", "why", "it", said)
        why = made.results.data["reduced"][-1]
        self.assertIn("is right once, and there was no time for another try", why)

    def test_what_one_step_decides_others_run_with(self):
        plan = 'if not any(flag.startswith("graphs=") for flag in flags) and name in "ad": os.abort()'
        data, found = self.visited(plan, ("steps",), workloads=("a", "d"))
        self.assertEqual(data["fallbacks"], ["graphs=step"])
        entry = found["steps"]["entries"][1]
        self.assertEqual(entry["narrowed"], {"again": "right with graphs=step"})

    def test_flags_only_go_down(self):
        made = self.visit()
        known = lambda: made.results.data["fallbacks"]
        made.fall_back("graphs=step", "")
        made.fall_back("disable=cudnn", "")
        self.assertEqual(known(), ["graphs=step", "disable=cudnn"])
        made.fall_back("graphs=off", "")
        self.assertEqual(known(), ["disable=cudnn", "graphs=off"])
        for flag in ("graphs=step", "graphs=off", "disable=cudnn"):
            self.assertFalse(made.leaves_out_more(flag))
            made.fall_back(flag, "")
        self.assertEqual(known(), ["disable=cudnn", "graphs=off"])


class Watching(InFolder):
    def lived(self, seconds, most, cores=0.0, writes=lambda at: False, stall=None, progress=None):
        """(second, kind) of the end of a command that takes so much of the cores, and writes then."""
        now, written = 0.0, 0
        usage = lambda _: (cores * now, written)
        with tempfile.TemporaryFile() as file, mock.patch("gpu.watching.usage", usage):
            watch = watching.Watch(1, file, progress and (lambda: progress(now)), lambda: now)
            while now < 1000:
                now += 1
                written += writes(now)
                watch.look()
                found = watch.judge(seconds, most, stall)
                if found:
                    return now, found[0]
        return None

    def test_what_does_nothing_hangs_at_its_limit(self):
        self.assertEqual(self.lived(30, 500), (31, "hang"))
        self.assertEqual(self.lived(30, 500, writes=lambda at: at < 15), (31, "hang"))

    def test_what_writes_is_slow_and_goes_on(self):
        self.assertEqual(self.lived(30, 500, writes=lambda at: True), (91, "limit"))
        self.assertEqual(self.lived(30, 500, writes=lambda at: at < 50), (60, "hang"))
        self.assertEqual(self.lived(30, 40, writes=lambda at: True), (41, "limit"))

    def test_who_waits_by_spinning_has_half_as_much_again(self):
        self.assertEqual(self.lived(30, 500, cores=1.0), (46, "hang"))
        self.assertEqual(self.lived(30, 500, cores=0.05), (31, "hang"))
        self.assertEqual(self.lived(30, 40, cores=1.0), (41, "limit"))

    def test_the_end_of_the_part_is_no_hang(self):
        self.assertEqual(self.lived(30, 10), (11, "limit"))
        self.assertEqual(self.lived(30, None), (31, "limit"))

    def test_what_stands_still_hangs_before_its_limit(self):
        still = {"stall": 45, "progress": lambda at: min(at, 20)}
        self.assertEqual(self.lived(100, None, **still), (66, "hang"))
        self.assertEqual(self.lived(100, None, cores=1.0, **still), (88, "hang"))
        self.assertEqual(self.lived(100, None, stall=45, progress=lambda at: at // 40), (101, "limit"))

    def test_a_child_that_keeps_kernels_is_progress(self):
        child = """
            import subprocess
            subprocess.run(["sh", "-c", "for k in 1 2 3 4 5 6 7 8 9; do sleep 0.5; echo x >> kept; done"])
        """
        ended = commands.run([self.program("program", child)], 4, folder=self.folder, most=60)
        self.assertTrue(ended.passed, ended.how)

    def test_what_waits_for_nothing_hangs(self):
        idle = self.program("program", "import time; time.sleep(60)")
        self.assertEqual(commands.run([idle], 3, folder=self.folder, most=60).kind, "hang")

    def test_of_processes_that_cannot_be_seen_nothing_is_known(self):
        self.assertEqual(watching.usage(2**22 + 1), (0.0, 0))
        seconds, written = watching.usage(os.getsid(0))
        self.assertGreaterEqual(min(seconds, written), 0)


class Parts(InFolder):
    def test_a_second_visit_does_not_turn_graphs_on_again(self):
        made = self.visit(device="cuda")
        made.fall_back("graphs=off", "as in first.json")
        ran = []
        timed = lambda _, label, *words, **more: ran.append(label) or {}
        with mock.patch("gpu.parts.timed", timed), mock.patch("gpu.second.workloads", return_value=("a",)):
            second.graphs(made)
        self.assertEqual(ran, ["a, graphs=off"])
        self.assertEqual(made.part["entries"][0]["why"], "programs run with graphs=off")
