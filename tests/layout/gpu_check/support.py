"""What the tests of scripts/gpu_check share."""

import argparse
import os
import stat
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCRIPT = os.path.join(ROOT, "scripts", "gpu_check")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from gpu import results, visit  # noqa: E402


class InFolder(unittest.TestCase):
    """A test with a folder of its own, self.folder, that is empty before and gone after."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def program(self, name, text):
        """A program in Python in the build folder of made_visit()."""
        path = self.path("build", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\n" + textwrap.dedent(text))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def visit(self, **changes):
        """A visit to the emulator, with programs in self.folder/build."""
        for name in ("build", "out", "temporary", "kernels"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        options = argparse.Namespace(
            device="emulator",
            emulated=None,
            build=self.path("build"),
            data=self.path("data"),
            cache=self.path("kernels"),
            temporary=self.path("temporary"),
            seconds=60,
            quick=False,
            root=ROOT,
            packed={},
            after=None,
            known=[],
        )
        vars(options).update(changes)
        found = results.Results(self.path("out"), {"visit": "first", "device": options.device})
        self.addCleanup(found.log_file.close)
        made = visit.Visit(options, found)
        made.part = found.begin("tests", 60)
        return made
