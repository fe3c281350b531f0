"""What a visit leaves behind: sizes are kept, and whatever ends it, what was written is whole."""

import contextlib
import io
import json
import os
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

from support import InFolder

from gpu import results


class Sizes(InFolder):
    def found(self, limit):
        os.makedirs(os.path.join(self.folder, "out"))
        made = results.Results(self.path("out"), {"visit": "first", "device": "cuda"}, limit)
        self.addCleanup(made.log_file.close)
        return made

    def test_a_long_text_keeps_its_two_ends(self):
        text = results.shortened("a" * 500 + "b" * 500, 200)
        self.assertLessEqual(len(text), 200)
        self.assertTrue(text.startswith("aaa") and text.endswith("bbb"))
        self.assertIn("characters left out", text)
        self.assertEqual(results.shortened("short", 200), "short")

    def test_json_gives_way_to_its_limit_and_says_so(self):
        for texts in (["x" * 100000] * 3, ["x" * 150] * 2000, ["x"] * 3000):
            found = self.found_in_memory(
                [{"name": text, "state": "failed", "why": text, "output": text} for text in texts]
            )
            text = results.as_json(found, 20000)
            self.assertLessEqual(len(text), 20000)
            small = json.loads(text)
            self.assertIn("20000 bytes", small["truncated"])
            self.assertEqual(small["parts"][0]["part"], "core")

    def found_in_memory(self, entries):
        return {"visit": "first", "parts": [{"part": "core", "state": "failed", "entries": entries}]}

    def test_json_within_its_limit_is_whole(self):
        value = self.found_in_memory([{"name": "a", "state": "passed"}])
        self.assertEqual(json.loads(results.as_json(value, 20000)), value)

    def test_files_of_a_visit_keep_their_limits(self):
        found = self.found(12000)
        part = found.begin("core", 10)
        for k in range(40):
            noise = os.urandom(3000).hex()
            found.text(f"text {k}", noise)
            found.add(part, {"name": f"case {k}", "state": "failed", "why": noise[:1000], "output": noise})
        found.end(part, 1)
        found.close()
        self.assertEqual(sorted(os.listdir(found.out)), sorted(results.NAMES))
        for name in results.NAMES:
            self.assertLessEqual(os.path.getsize(found.path(name)), 12000, name)
        with open(found.path("results.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.assertTrue(data["finished"])
        self.assertIn("truncated", data)
        with open(found.path("log.txt"), encoding="utf-8") as file:
            self.assertIn("the log is full", file.read())

    def test_the_log_is_written_whatever_becomes_of_what_is_printed(self):
        class Broken(io.StringIO):
            encoding = "ascii"

            def __init__(self, problem):
                super().__init__()
                self.problem = problem

            def write(self, text):
                if isinstance(self.problem, UnicodeEncodeError) and text.isascii():
                    return super().write(text)
                raise self.problem

        found = self.found(100000)
        unknown = UnicodeEncodeError("ascii", "\u00b5s", 0, 1, "ordinal not in range")
        for k, problem in enumerate((BrokenPipeError(), OSError(28, "full"), ValueError("closed"), unknown)):
            with contextlib.redirect_stdout(Broken(problem)) as out:
                found.log(f"line {k} of \u00b5s")
                found.log(f"and {k}")
                if problem is unknown:
                    self.assertEqual(out.getvalue(), "line 3 of \\xb5s\nand 3\n")
        with open(found.path("log.txt"), encoding="utf-8") as file:
            said = [line for k in range(4) for line in (f"line {k} of \u00b5s\n", f"and {k}\n")]
            self.assertEqual(file.readlines(), said)

    def test_faults_of_cases_side_by_side_have_numbers_of_their_own(self):
        found = self.found(100000)
        together = threading.Barrier(8)  # all have added theirs before any looks at its number
        log = found.log

        def late(line):
            together.wait(20)
            log(line)

        found.log = late
        with ThreadPoolExecutor(8) as pool:
            usual = {"part": "steps", "kind": "hang", "kernel": None}
            usual.update(phase=None, lines=[], memcheck="")
            faults = [dict(usual, case=str(k)) for k in range(8)]
            numbers = list(pool.map(found.fault, faults))
        for number, fault in zip(numbers, faults):
            self.assertIs(found.data["faults"][number], fault)

    def test_the_archive_holds_the_texts_under_plain_names(self):
        found = self.found(100000)
        self.assertEqual(found.text("a/../b c", "one"), "a_.._b_c")
        self.assertEqual(found.text("a/../b c", "two"), "2_a_.._b_c")
        found.write_texts()
        with open(found.path("texts.tar.xz"), "rb") as file, tarfile.open(
            fileobj=io.BytesIO(file.read())
        ) as archive:
            self.assertEqual(
                {entry.name: archive.extractfile(entry).read() for entry in archive},
                {"a_.._b_c": b"one", "2_a_.._b_c": b"two"},
            )

    def test_folders_of_the_machine_are_in_no_file(self):
        os.makedirs(os.path.join(self.folder, "out"))
        words = {"/home/somebody": "~", "/home/somebody/bitale": ".", "/": "never", "": "never"}
        found = results.Results(self.path("out"), {"visit": "first"}, places=words)
        part = found.begin("core", 10)
        why = "run /home/somebody/bitale/build/x -I/home/somebody/include, /home/somebody2 and /home/somebody."
        short = "run ./build/x -I~/include, /home/somebody2 and ~."
        found.add(part, {"name": "case", "state": "failed", "why": why, "command": ["a", {"b": why}]})
        found.text("said.txt", why)
        found.end(part, 1)
        found.close()
        self.assertEqual(part["entries"][0]["why"], why)  # what the script itself works with
        with open(found.path("results.json"), encoding="utf-8") as file:
            entry = json.load(file)["parts"][0]["entries"][0]
        self.assertEqual((entry["why"], entry["command"]), (short, ["a", {"b": short}]))
        for name in ("table.md", "log.txt"):
            with open(found.path(name), encoding="utf-8") as file:
                self.assertIn(short, file.read())
        with tarfile.open(found.path("texts.tar.xz")) as archive:
            self.assertEqual(archive.extractfile("said.txt").read().decode(), short)

    def test_every_entry_is_on_disk_at_once(self):
        found = self.found(100000)
        part = found.begin("core", 10)
        found.add(part, {"name": "first", "state": "passed"})
        with open(found.path("results.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual([entry["name"] for entry in data["parts"][0]["entries"]], ["first"])
        self.assertEqual((data["finished"], data["parts"][0]["state"]), (False, "running"))
        with open(found.path("table.md"), encoding="utf-8") as file:
            self.assertIn("not finished", file.read())
