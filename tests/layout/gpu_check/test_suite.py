"""Files of tests: reports of a testing library, whole or cut; faults cost one case, not the file."""

import time
from concurrent.futures import ThreadPoolExecutor

from support import InFolder

from gpu import isolation, suite

REPORT = """<?xml version="1.0"?><Catch name="test"><Group name="test">
<TestCase name="adds" tags="[x]"><OverallResult success="true"/></TestCase>
<TestCase name="breaks, twice"><Expression success="false" type="CHECK" filename="/a/b_test.cpp" line="12">
<Original> x == 1 </Original><Expanded> 2 == 1 </Expanded></Expression>
<Exception filename="/a/b_test.cpp" line="13"> device cuda is not usable any more in this process </Exception>
<OverallResult success="false"/></TestCase>
<TestCase name="hangs"><Section name="deep">"""


class Reports(InFolder):
    def test_a_report_that_ends_in_the_middle(self):
        cases = suite.read_report(REPORT.encode())
        self.assertEqual(
            [(case.name, case.passed, case.ended) for case in cases],
            [("adds", True, True), ("breaks, twice", False, True), ("hangs", None, False)],
        )
        self.assertEqual(
            cases[1].texts,
            [
                "b_test.cpp:12: x == 1 | 2 == 1",
                "b_test.cpp:13: device cuda is not usable any more in this process",
            ],
        )
        self.assertTrue(cases[1].sticky)
        self.assertEqual(suite.read_report(b""), [])

    def test_names_are_no_patterns(self):
        self.assertEqual(suite.select('a, [b] "c" *'), '"a\\, \\[b\\] \\"c\\" \\*"'[1:-1])


# A program that looks like one of tests: the cases named in FAULT do as it says, if BITALE_FLAGS lets them.
FAKE = """
    import os, re, signal, sys, time
    CASES = ["one", "two, with a comma", "three", "four", "five"]
    FAULT = {fault!r}
    if "--list-test-names-only" in sys.argv:
        print("\\n".join(CASES))
        sys.exit(len(CASES))
    chosen = sys.argv[2]
    all_of_them = chosen.startswith("[#")
    names = [name for name in CASES if all_of_them or name.replace(",", "\\\\,") in chosen]
    out = open(sys.argv[sys.argv.index("-o") + 1], "w") if "-o" in sys.argv else sys.stdout
    write = lambda text: (out.write(text), out.flush())
    write("<Catch>")
    gone = failed = False
    for name in names:
        write('<TestCase name="%s">' % name)
        kind = FAULT.get(name)
        if kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if kind == "compiles":
            cache = re.search("cache_dir=([^,]*)", os.environ["BITALE_FLAGS"])[1]
            for number in range(6):
                time.sleep(0.4)
                open(os.path.join(cache, f"{{name}} {{number}}"), "w").close()
        if kind == "compiles forever" and "launches=wait" not in os.environ["BITALE_FLAGS"]:
            cache = re.search("cache_dir=([^,]*)", os.environ["BITALE_FLAGS"])[1]
            for number in range(100):
                time.sleep(0.2)
                open(os.path.join(cache, str(number)), "w").close()
        if kind == "hang":
            if "launches=wait" in os.environ["BITALE_FLAGS"]:
                print("launches=wait: still running after 2.0 s: kernel k_12ab34cd of train (phase 2 of 3, "
                      "1 blocks of 256 threads), which computes dot at net.cpp:12", flush=True)
                sys.exit(1)  # as if it were ended: the tests need not wait for that
            time.sleep(60)
        gone = gone or kind == "sticky"
        if gone:
            where = "in train"
            if "launches=wait" in os.environ["BITALE_FLAGS"]:
                where = "which computes dot at net.cpp:12, relu at net.cpp:13"
                where = "kernel k_12ab34cd of train (phase 1 of 2, 18 blocks of 256 threads), " + where
            write('<Exception filename="x.cpp" line="1">%s fails: illegal address; device emulator '
                  'is not usable any more in this process</Exception>' % where)
        bad = gone or kind == "wrong"
        if kind == "wrong":
            write('<Failure filename="x.cpp" line="2">differs by 0.5</Failure>')
        failed = failed or bad
        write('<OverallResult success="%s"/></TestCase>' % ("false" if bad else "true"))
    write("</Catch>")
    sys.exit(1 if failed else 0)
"""


class Faults(InFolder):
    def entry(self, fault, seconds=30, stall=1):
        visit = self.visit()
        self.program("test_fake", FAKE.format(fault=fault))
        suite.run_file(visit, "test_fake", "[#fake_test]", seconds, stall)
        self.assertEqual(len(visit.part["entries"]), 1)
        return visit.part["entries"][0], visit.results.data["faults"]

    def test_all_pass(self):
        entry, faults = self.entry({})
        self.assertEqual((entry["state"], entry["cases"], entry["processes"], faults), ("passed", 5, 1, []))

    def test_a_wrong_result_is_no_fault(self):
        entry, faults = self.entry({"three": "wrong"})
        self.assertEqual((entry["state"], entry["cases"], entry["processes"], faults), ("failed", 5, 1, []))
        self.assertEqual(entry["failures"], {"three": ["x.cpp:2: differs by 0.5"]})

    def test_a_sticky_fault_costs_one_case_and_names_its_kernel(self):
        entry, faults = self.entry({"two, with a comma": "sticky"})
        self.assertEqual((entry["cases"], entry["processes"], entry["not_run"]), (5, 2, []))
        self.assertEqual(list(entry["failures"]), ["two, with a comma"])
        fault = faults[0]
        self.assertEqual(
            (fault["part"], fault["case"], fault["kind"]), ("tests", "two, with a comma", "sticky")
        )
        self.assertEqual((fault["kernel"], fault["phase"], fault["function"]), ("k_12ab34cd", 1, "train"))
        self.assertEqual(fault["lines"], ["net.cpp:12", "net.cpp:13"])
        self.assertIn("illegal address", fault["message"])
        self.assertIn("needs a GPU", fault["memcheck"])

    def test_a_crash_costs_one_case(self):
        entry, faults = self.entry({"one": "crash", "four": "crash"})
        self.assertEqual((entry["cases"], entry["processes"]), (5, 3))
        self.assertEqual(list(entry["failures"]), ["one", "four"])
        self.assertEqual([fault["kind"] for fault in faults], ["crash", "crash"])
        self.assertIn("SIGSEGV", faults[0]["how"])

    def test_a_hang_ends_and_names_its_kernel(self):
        entry, faults = self.entry({"five": "hang"})
        self.assertEqual((entry["cases"], list(entry["failures"])), (5, ["five"]))
        self.assertEqual(
            (faults[0]["kind"], faults[0]["kernel"], faults[0]["phase"]), ("hang", "k_12ab34cd", 2)
        )
        self.assertIn("no progress for 1 s", faults[0]["how"])

    def test_a_case_that_compiles_for_long_does_not_hang(self):
        entry, faults = self.entry({"two, with a comma": "compiles"})
        self.assertEqual((entry["state"], entry["cases"], entry["processes"], faults), ("passed", 5, 1, []))

    def test_what_compiles_beside_a_hang_does_not_hide_it(self):
        visit = self.visit(device="cuda")
        visit.tools = {"compute-sanitizer": None}
        self.program("test_hangs", FAKE.format(fault={"two, with a comma": "hang"}))
        self.program("test_other", FAKE.format(fault={name: "compiles" for name in ("one", "three", "four")}))
        with ThreadPoolExecutor(2) as pool:
            names = ("test_hangs", "test_other")
            list(pool.map(lambda name: suite.run_file(visit, name, f"[#{name}]", 7, 3), names))
        entries = {entry["name"]: entry for entry in visit.part["entries"]}
        self.assertEqual(list(entries["test_hangs [#test_hangs]"]["failures"]), ["two, with a comma"])
        self.assertEqual(entries["test_hangs [#test_hangs]"]["state"], "failed")
        self.assertEqual(
            [(fault["case"], fault["kind"]) for fault in visit.results.data["faults"]],
            [("two, with a comma", "hang")],
        )
        self.assertEqual(entries["test_other [#test_other]"]["failures"], {})

    def test_a_case_that_compiles_up_to_the_limit_is_slow(self):
        entry, faults = self.entry({"two, with a comma": "compiles forever"}, seconds=6, stall=2)
        self.assertEqual((entry["state"], entry["failures"], faults), ("skipped", {}, []))
        self.assertEqual((entry["interrupted"], entry["cases"]), ("two, with a comma", 1))
        self.assertIn("out of time", entry["why"])

    def test_a_case_that_the_end_of_the_part_cuts_off_is_no_fault(self):
        for kind in ("compiles forever", "hang"):
            visit = self.visit()
            self.program("test_fake", FAKE.format(fault={"two, with a comma": kind}))
            visit.part_end = time.monotonic() + 7
            suite.run_file(visit, "test_fake", "[#fake_test]", 100, 3 if kind == "compiles forever" else 45)
            entry = visit.part["entries"][0]
            self.assertEqual((entry["state"], visit.results.data["faults"]), ("skipped", []))
            self.assertEqual((entry["interrupted"], len(entry["not_run"])), ("two, with a comma", 4))
            self.assertIn("out of time", entry["why"])

    def test_time_that_runs_out_is_no_fault(self):
        entry, faults = self.entry({"four": "hang"}, seconds=6, stall=60)
        self.assertEqual((entry["state"], entry["cases"], faults), ("skipped", 3, []))
        self.assertEqual((entry["not_run"], entry["interrupted"]), (["four", "five"], "four"))
        self.assertIn("out of time", entry["why"])


class Words(InFolder):
    def test_words_of_launches(self):
        after = (
            "fails: an illegal memory access was encountered (cudaErrorIllegalAddress); device cuda is not"
            " usable any more"
        )
        kernel = (
            "kernel k_0123456789abcdef_1 of train step (phase 2 of 2, 1 blocks of 32 threads), which computes"
            " sum at a b.cpp:7 "
        )
        facts = isolation.facts_of(f"a.cpp:3: other\n  {kernel}{after}\n")
        self.assertEqual((facts["kernel"], facts["phase"]), ("k_0123456789abcdef_1", 2))
        facts = isolation.facts_of(
            "the library's matrix product [128, 784] . [784, 500] of train, which computes dot at "
            f"net.cpp:9 {after}"
        )
        self.assertEqual(
            (facts["kernel"], facts["lines"]),
            ("library's matrix product [128, 784] . [784, 500]", ["net.cpp:9"]),
        )
        self.assertEqual(isolation.facts_of("nothing of the kind"), {})

    def test_words_of_the_kernels_that_end_a_step(self):
        for kernel in ("bitale_advance", "bitale_commit"):
            launch = f"kernel {kernel} (1 blocks of 256 threads), which ends a step of train"
            fails = f"{launch} fails: an illegal address (cudaErrorIllegalAddress); device cuda is gone"
            for text in (fails, f"launches=wait: still running after 10.0 s: {launch}"):
                facts = isolation.facts_of("other\n" + text)
                self.assertEqual((facts.get("kernel"), facts.get("function")), (kernel, "train"))
                self.assertNotIn("phase", facts)
                self.assertEqual(facts["message"], text)
        # A copy is no kernel, and a kernel of a function says more than what follows it.
        computes = "kernel k_12 of train (phase 1 of 2, 1 blocks of 32 threads), which computes sum at a.cpp"
        self.assertEqual(isolation.facts_of(computes + " fails (cudaErrorUnknown)")["phase"], 1)

    def test_words_of_memcheck(self):
        facts = isolation.memcheck_facts(
            "========= COMPUTE-SANITIZER\nour line\n========= Invalid __global__ write of size 4"
            " bytes\n=========     at k_12ab34cd+0x90 in kernels.cu:14\n=========     by thread (1,0,0) in"
            " block (0,0,0)\n========= ERROR SUMMARY: 1 error\n"
        )
        self.assertEqual(
            (facts["kernel"], facts["line"], facts["summary"]),
            ("k_12ab34cd", "kernels.cu:14", "ERROR SUMMARY: 1 error"),
        )
        self.assertEqual(facts["first"][0], "Invalid __global__ write of size 4 bytes")
