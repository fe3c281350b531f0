"""What is found out of a fault: the launch, confirmed by waiting, and what memcheck says where it fails."""

from support import InFolder

from gpu import isolation, table

GONE = "device cuda is not usable any more in this process"
UNWAITED = (
    "launching kernel k_cc33 of train (phase 1 of 2, 3 blocks of 32 threads), which computes relu at"
    " net.cpp:9 fails: an illegal memory access was encountered (cudaErrorIllegalAddress), in train; the"
    " fault is of this launch or of one of those before it that nobody waited for: 2 others, then k_aa11"
    " phase 1 of train (dot at net.cpp:3, add at net.cpp:4), a copy, a matrix product of the library of train"
    " (dot at net.cpp:7), k_cc33 phase 1 of train (relu at net.cpp:9); launches=wait in BITALE_FLAGS waits"
    f" after every launch and names the kernel; {GONE}"
)
WAITED = (
    "kernel k_aa11 of train (phase 1 of 1, 3 blocks of 32 threads), which computes dot at net.cpp:3 fails: an"
    f" illegal memory access was encountered (cudaErrorIllegalAddress); {GONE}"
)
# Stands for gpu_steps: fails in graphs; with launches=wait as ALONE says. It dumps its text where it is told.
FAILS = """
    import os, sys
    waits = "launches=wait" in os.environ["BITALE_FLAGS"]
    if "BITALE_DUMP" in os.environ:
        folder = os.path.join(os.environ["BITALE_DUMP"], "001_train")
        os.makedirs(folder)
        with open(os.path.join(folder, "kernels_0.cu"), "w") as file:
            lines = ["// nothing"] * 9 + ['extern "C" __global__ void k_12ab34cd(const k_arguments a) {{']
            lines += ["// dot at net.cpp:12, relu at net.cpp:13", "int x = a.x;"]
            lines += ["int y = " + "1 + " * 200 + "1;", "a.out[x] = y;", "// sum at net.cpp:20", "}}"]
            file.write("\\n".join(lines))
    said = {alone!r} if waits else {unwaited!r}
    print(said)
    sys.exit(1 if said else 0)
"""
# Stands for compute-sanitizer, which finds what the program does wrong.
SANITIZER = """
    import os, subprocess, sys
    done = subprocess.run(sys.argv[sys.argv.index("--print-limit") + 2:], stdout=subprocess.PIPE, text=True)
    print("========= COMPUTE-SANITIZER", os.environ["BITALE_FLAGS"])
    if done.returncode:
        print("========= Invalid __global__ write of size 4 bytes")
        print("=========     at k_12ab34cd+0x90 in train.cu:14")
    print("========= ERROR SUMMARY: %d errors" % done.returncode)
    sys.exit(99 if done.returncode else 0)
"""


class Suspects(InFolder):
    def fault(self, alone, sanitizer=None):
        made = self.visit(device="cuda")
        made.tools = {"compute-sanitizer": sanitizer and self.program("sanitizer", sanitizer)}
        program = self.program("gpu_steps", FAILS.format(alone=alone, unwaited=UNWAITED))
        entry, _ = made.command("a", [program], 20)
        self.assertEqual((entry["state"], entry["fault"]), ("failed", 0))
        return made.results.data["faults"][0], made

    def test_a_launch_that_is_refused_need_not_be_the_culprit(self):
        found, _ = self.fault(WAITED)
        self.assertEqual((found["kernel"], found["phase"], found["lines"]), ("k_aa11", 1, ["net.cpp:3"]))
        suspects = [(each["launch"], each["kernel"], each["lines"]) for each in found["suspects"]]
        self.assertEqual(
            suspects,
            [
                ("k_cc33", "k_cc33", ["net.cpp:9"]),
                ("k_aa11 phase 1 of train", "k_aa11", ["net.cpp:3", "net.cpp:4"]),
                ("a copy", None, []),
                ("a matrix product of the library of train", None, ["net.cpp:7"]),
            ],
        )

    def test_what_passes_when_it_is_waited_for_has_suspects_and_no_kernel(self):
        found, made = self.fault("")
        self.assertEqual((found["kernel"], found["phase"], found["lines"]), (None, None, []))
        self.assertEqual((len(found["suspects"]), found["function"]), (4, "train"))
        row = next(line for line in table.markdown(made.results.data).split("\n") if "| a | sticky" in line)
        self.assertIn("| one of k_cc33, k_aa11 phase 1 of train, a copy and 1 more |", row)
        self.assertIn("| passes alone with launches=wait |", row)

    def test_a_launch_before_which_all_was_waited_for_is_the_only_suspect(self):
        only = "launching kernel k_1 of f (phase 1 of 1, 1 blocks of 9 threads), which computes dot at a.c:1"
        self.assertEqual(
            isolation.suspects_of(f"{only} fails: misaligned address; {GONE}"),
            [{"launch": "k_1", "kernel": "k_1", "lines": ["a.c:1"]}],
        )
        other = (
            "waiting for the GPU fails: x (cudaErrorUnknown), in f; the fault is of one of the launches"
            f" before this that nobody waited for: k_2 phase 1 of f (dot at a.cpp:2); {GONE}"
        )
        self.assertEqual(
            isolation.suspects_of(other),
            [{"launch": "k_2 phase 1 of f", "kernel": "k_2", "lines": ["a.cpp:2"]}],
        )
        self.assertEqual(isolation.suspects_of("it crashed"), [])

    def test_what_fails_in_graphs_alone_is_shown_to_memcheck_in_graphs(self):
        found, made = self.fault("", SANITIZER)
        memcheck = found["memcheck"]
        self.assertEqual(found["kernel"], "k_12ab34cd")
        self.assertEqual(memcheck["launches"], "as in the case that failed")
        self.assertEqual(memcheck["first"][0], "Invalid __global__ write of size 4 bytes")
        self.assertEqual(found["lines"], ["net.cpp:12", "net.cpp:13"])
        self.assertIn("debug_lines=on", made.results.texts[memcheck["text"]])
        self.assertNotIn("launches=wait", made.results.texts[memcheck["text"]])
        self.assertEqual(memcheck["computes"], "// dot at net.cpp:12, relu at net.cpp:13")
        self.assertEqual([line.split(":")[0] for line in memcheck["quoted"]], [str(k) for k in range(10, 17)])
        self.assertEqual(memcheck["quoted"][4], "14: a.out[x] = y;")
        self.assertLess(max(map(len, memcheck["quoted"])), 210)

    def test_what_fails_alone_too_is_shown_to_memcheck_launch_by_launch(self):
        found, made = self.fault(WAITED, SANITIZER)
        self.assertEqual((found["kernel"], found["lines"]), ("k_aa11", ["net.cpp:3"]))
        self.assertEqual(found["memcheck"]["launches"], "waited for one by one")
        self.assertIn("launches=wait", made.results.texts[found["memcheck"]["text"]])

    def test_lines_of_a_text_that_is_not_there(self):
        self.assertEqual(isolation.quoted(self.folder, "train.cu:14", "k_1"), {})
