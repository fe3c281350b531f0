"""The tables of docs/gpu.md, from results of visits."""

import json
import subprocess
import sys

from support import SCRIPT, InFolder

from gpu import figures

REPORT = """Function a at a.cpp:1, device cuda

Each call:

  1. k_1  sum + check of a row
     launch 1: 18 blocks of 128 threads, 128 at work, 1 wave; predicted 3.0 us, bound by its start
     launch 2: 1 block of 32 threads, 16 at work, 1 wave; predicted 1.0 us, bound by its start
  2. gemm  dot + add (float32 [8, 8]) at a.cpp:3
     library call: c[8, 8] = a . b over 8
  3. k_2  tanh (float32 [8]) at a.cpp:4
     launch: 128 blocks of 256 threads, 40 at work, 1 wave; predicted 200.0 us, bound by memory
"""


def step(name, loop, report=REPORT):
    rows = [{"name": "k_1", "us": 10.0}, {"name": "gemm", "us": 7.0}, {"name": "k_2", "us": 100.0}]
    found = {"loop": {"us": loop}, "calls": {"us": loop + 1}, "profile": {"rows": rows}}
    result = {"items": dict(found, report={"text": report})}
    return {"name": f"{name}: net, batch 8", "state": "passed", "result": result}


def peer(label, form, us):
    framework, name = label.split()
    result = {"items": {form: {"us": us}}}
    return {"name": f"{framework} {name}: {form}", "state": "passed", "result": result}


def visit(**parts):
    return {"parts": [{"part": name, "entries": entries} for name, entries in parts.items()]}


class Figures(InFolder):
    def test_steps_beside_peers(self):
        peers = [peer("jax a", "scan", 25.0), peer("torch a", "graph", 30.04)]
        peers.append(peer("torch b", "graph", 500.0))
        ours = [step("a", 50.0), step("b", 250.0)]
        files = [visit(times=[step("a", 99.0)]), visit(peers=peers), visit(times=ours)]
        self.assertEqual(
            figures.steps(files).splitlines(),
            [
                "| us a step | loop | calls | JAX, scan | PyTorch, graph | loop / fastest peer |",
                "|---|---|---|---|---|---|",
                "| `a`: net, batch 8 | 50.0 | 51.0 | 25.0 | 30.0 | 2.00 |",
                "| `b`: net, batch 8 | 250 | 251 |  | 500 | 0.50 |",
            ],
        )

    def test_launches_beside_predictions(self):
        files = [visit(times=[step("a", 50.0), step("b", 50.0, REPORT.replace("k_2", "k_3"))])]
        self.assertEqual(
            figures.predictions(files).splitlines(),
            [
                "| step | launches | predicted, us | measured, us | ratio | furthest off: us (ratio) |",
                "|---|---|---|---|---|---|",
                "| `a` | 3 | 204 | 110 | 0.5 | sum 10.0 (2.5); tanh 100 (0.5) |",
            ],
        )

    def test_ceilings_of_the_last_visit_that_measured_them(self):
        files = [dict(visit(), ceilings={"copy": 3613.4, "fma": 63.81}), visit()]
        self.assertEqual(
            figures.ceilings(files).splitlines()[2:],
            [
                "| copy of 268 MB, bytes read and written | 3613 GB/s |",
                "| fused multiply-adds of float32 | 63.8 TFLOP/s |",
            ],
        )

    def test_what_no_visit_measured_has_no_table(self):
        self.assertEqual(figures.markdown([visit(), {}]), "")

    def test_the_script_prints_them(self):
        path = self.path("results.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(visit(times=[step("a", 50.0)]), file)
        command = [sys.executable, SCRIPT, "--tables", path]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("| `a`: net, batch 8 | 50.0 | 51.0 |  |", said.stdout)
        self.assertIn("| `a` | 3 | 204 | 110 |", said.stdout)
