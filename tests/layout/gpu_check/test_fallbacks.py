"""What later parts do without: decided by failures that come again, and by flags that cure them, twice."""

import os
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
    def visited(self, plan, names, seconds=60, limit=2, workloads=("a",)):
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
        slow = 'if name == "cudnn" and number == 1: time.sleep(5)'
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
    def run_(self, text, seconds, most):
        return commands.run([self.program("program", text)], seconds, folder=self.folder, most=most)

    def test_what_writes_is_slow_and_goes_on(self):
        writes = "import time\nfor k in range(10): time.sleep(0.5); print(k, flush=True)"
        self.assertTrue(self.run_(writes, 3, 30).passed)
        ended = self.run_(writes.replace("10", "100"), 3, 30)
        self.assertEqual((ended.kind, ended.seconds // 1), ("limit", 9))
        self.assertIn("slow", ended.how)
        self.assertEqual(self.run_(writes, 3, 4).kind, "limit")

    def test_a_child_that_keeps_kernels_is_progress(self):
        child = """
            import os, subprocess
            subprocess.run(["sh", "-c", "for k in 1 2 3 4 5 6 7 8; do sleep 0.5; echo x >> kept; done"])
        """
        self.assertTrue(self.run_(child, 2.5, 30).passed)

    def test_what_waits_for_nothing_hangs(self):
        ended = self.run_("import time; print('begins', flush=True); time.sleep(30)", 3, 30)
        self.assertEqual((ended.kind, ended.seconds // 1), ("hang", 3))

    def test_who_waits_by_spinning_has_half_as_much_again(self):
        spins = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
        self.assertTrue(self.run_(spins.format(5), 4, 30).passed)
        ended = self.run_(spins.format(30), 4, 30)
        self.assertEqual((ended.kind, ended.seconds // 1), ("hang", 6))

    def test_the_end_of_the_part_is_no_hang(self):
        self.assertEqual(self.run_("import time; time.sleep(30)", 10, 1).kind, "limit")

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
