"""The archive: its limits, its way to the other machine, and what it refuses there."""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from unittest import mock

from support import ROOT, InFolder

from gpu import pack


class Packing(InFolder):
    def options(self, **changes):
        """A build folder of programs that are copies of one, as real ones nearly are."""
        for inside, names in pack.TARGETS.items():
            for name in names:
                with open("/bin/true", "rb") as source, open(self.path("build", inside, name), "wb") as file:
                    file.write(source.read())
                os.chmod(self.path("build", inside, name), 0o755)
        options = argparse.Namespace(
            root=ROOT,
            pack=self.path("to", ""),
            build=self.path("build"),
            limit=60,
            data_too=False,
            newer_glibc=False,
        )
        vars(options).update(changes)
        return options

    def make(self, **changes):
        said = io.StringIO()
        os.makedirs(self.path("temporary", ""), exist_ok=True)
        with contextlib.redirect_stdout(said):
            pack.make(self.options(**changes), self.path("temporary", ""))
        return said.getvalue()

    def test_the_last_line_is_the_size(self):
        said = self.make().splitlines()
        size = os.path.getsize(self.path("to", pack.NAME))
        self.assertEqual(said[-1], f"{size / 2**20:.1f} MiB")
        self.assertTrue(any("scripts/gpu_check --first --out results" in line for line in said))

    def test_what_exceeds_the_limit_is_refused(self):
        tracked = pack.tracked_bytes(ROOT) / 2**20
        self.assertGreater(tracked, 5)  # MNIST is among it
        with self.assertRaisesRegex(SystemExit, "exceed .* MiB \\(--limit\\); nothing was written"):
            self.make(limit=tracked)
        self.assertFalse(os.path.exists(self.path("to", pack.NAME)))

    def test_a_program_that_is_not_built_is_named(self):
        options = self.options()
        os.remove(self.path("build", "bitale-info"))
        with self.assertRaisesRegex(SystemExit, "bitale-info is not built"):
            pack.make(options, self.folder)

    NEWER = """
        import sys
        print("    12: 0 FUNC GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)")
        print("    13: 0 FUNC GLOBAL DEFAULT  UND arc4random@GLIBC_2.36 (7)")
        print("    14: 0 FUNC GLOBAL DEFAULT  UND __isoc23_strtol@GLIBC_2.38 (8)")
    """

    def test_programs_of_a_newer_libc_are_refused_unless_allowed(self):
        tools = os.path.dirname(self.program("readelf", self.NEWER))
        with mock.patch.dict(os.environ, {"PATH": tools + os.pathsep + os.environ["PATH"]}):
            with self.assertRaisesRegex(SystemExit, "because of __isoc23_strtol, arc4random; nothing was"):
                self.make()
            self.assertFalse(os.path.exists(self.path("to", pack.NAME)))
            said = self.make(newer_glibc=True)
        self.assertIn("do not start on Ubuntu 22.04 (glibc 2.35), because of __isoc23_strtol, arc4", said)
        self.assertTrue(os.path.exists(self.path("to", pack.NAME)))
        with mock.patch.dict(os.environ, {"PATH": self.path("nothing")}):
            with self.assertRaisesRegex(SystemExit, "no readelf .* --newer-glibc packs them"):
                self.make()

    def test_a_pack_from_no_checkout_has_no_commit(self):
        self.make(root=self.elsewhere())
        about = pack.read_about(pack.unpack(self.path("to", pack.NAME), self.path("there", "")))
        self.assertEqual((about["commit"], about["changed"]), (None, False))

    def elsewhere(self):
        """What is packed, in a folder that is no checkout."""
        for name in ("scripts", "benchmarks"):
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(os.path.join(ROOT, name), self.path("elsewhere", name), ignore=leave)
        return self.path("elsewhere")

    def test_there_and_back(self):
        self.make()
        with tarfile.open(self.path("to", pack.NAME)) as archive:
            first = archive.next()
            self.assertEqual(first.name, "gpu_pack/README.txt")
            self.assertIn(b"scripts/gpu_check --first --out results", archive.extractfile(first).read())
            names = archive.getnames()
        self.assertFalse([name for name in names if "data/" in name or "__pycache__" in name])
        folder = pack.unpack(self.path("to", pack.NAME), self.path("there", ""))
        self.assertEqual(pack.unpack(self.path("to", pack.NAME), self.path("there", "")), folder)
        about = pack.read_about(folder)
        self.assertRegex(about["needs_libc"], r"^2\.\d+$")
        self.assertTrue(os.access(os.path.join(folder, "tests", "test_cuda"), os.X_OK))
        # The script in the archive starts, and takes the programs beside it.
        done = subprocess.run(
            [
                sys.executable,
                os.path.join(folder, "scripts", "gpu_check"),
                "--first",
                "--part",
                "information",
                "--out",
                self.path("out"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertIn("bitale-info", done.stdout)
        self.assertEqual(
            sorted(os.listdir(self.path("out"))), ["log.txt", "results.json", "table.md", "texts.tar.xz"]
        )

    def test_data_travels_only_when_asked(self):
        self.make(data_too=True)
        with tarfile.open(self.path("to", pack.NAME)) as archive:
            self.assertTrue([name for name in archive.getnames() if name.startswith("gpu_pack/data/mnist/")])

    def test_archives_that_reach_outside_are_refused(self):
        for name, kind in (
            ("gpu_pack/../../evil", tarfile.REGTYPE),
            ("/tmp/evil", tarfile.REGTYPE),
            ("other/file", tarfile.REGTYPE),
            ("gpu_pack/link", tarfile.SYMTYPE),
        ):
            path = self.path("evil", pack.NAME)
            with tarfile.open(path, "w:xz") as archive:
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = kind, "/etc/passwd"
                archive.addfile(entry)
            with self.assertRaisesRegex(SystemExit, "no archive of gpu_check holds"):
                pack.unpack(path, self.path("there", ""))
