"""What the peers share: the description of the networks, data, initial values, and the loop over requests."""

import gzip
import json
import math
import os
import pathlib
import sys
import time

import numpy as np

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
DESCRIPTION = json.loads((BENCHMARKS / "networks.json").read_text())


class Workload:
    """A workload of networks.json. Evaluations have the layers of the network that they evaluate."""

    def __init__(self, name):
        entry = DESCRIPTION["workloads"][name]
        self.name = name
        self.evaluation = "evaluates" in entry
        network = DESCRIPTION["workloads"][entry["evaluates"]] if self.evaluation else entry
        self.batch = entry["batch"]
        self.layers = network["layers"]
        self.optimizer = network["optimizer"]
        self.data = entry["data"]
        data = DESCRIPTION["data"][self.data]
        self.shape = tuple(data["shape"])
        self.count = data["test" if self.evaluation else "train"]
        self.normalise = data["normalise"]
        self.convolutional = any(layer[0] == "conv" for layer in self.layers)

    def images(self):
        """uint8 [n, channels, height, width] and labels [n]; made up unless the data set is MNIST and is
        here."""
        prefix = pathlib.Path(os.environ.get("BITALE_DATA") or BENCHMARKS.parent / "data" / "mnist")
        kind = "t10k" if self.evaluation else "train"
        pixels = prefix / f"{kind}-images-idx3-ubyte.gz"
        if self.data == "mnist" and pixels.exists():
            images = _idx(pixels, 16).reshape((-1,) + self.shape)
            return images[:self.count], _idx(prefix / f"{kind}-labels-idx1-ubyte.gz", 8)[:self.count]
        random = np.random.default_rng(1)
        return (random.integers(0, 256, (self.count,) + self.shape, dtype=np.uint8),
                random.integers(0, 10, self.count, dtype=np.uint8))

    def order(self):
        return np.random.default_rng(2).permutation(self.count)

    def parameters(self):
        """Initial values layer by layer: (index of the layer, "w" or "b", float32 array); dense [in, out]."""
        random = np.random.default_rng(3)
        values, shape = [], self.shape
        for index, layer in enumerate(self.layers):
            kind = layer[0]
            if kind == "conv":
                _, filters, size, border = layer
                values.append((index, "w", _glorot(random, (filters, shape[0], size, size))))
                lost = 0 if border == "half" else size - 1
                shape = (filters, shape[1] - lost, shape[2] - lost)
            elif kind == "bias":
                values.append((index, "b", np.zeros(shape[0], np.float32)))
            elif kind == "pool":
                _, window, stride = layer
                shape = (shape[0],) + tuple((n - window) // stride + 1 for n in shape[1:])
            elif kind == "dense":
                values.append((index, "w", _glorot(random, (math.prod(shape), layer[1]))))
                values.append((index, "b", np.zeros(layer[1], np.float32)))
                shape = (layer[1],)
        return values


def kernel(name):
    """One of kernels.json."""
    return json.loads((BENCHMARKS / "kernels.json").read_text())["kernels"][name]


def shape(name):
    """One of shapes.json."""
    return json.loads((BENCHMARKS / "shapes.json").read_text())["shapes"][name]


def _idx(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header).copy()


def _glorot(random, shape):
    receptive = math.prod(shape[2:]) if len(shape) == 4 else 1
    bound = math.sqrt(6 / ((shape[0] + shape[1]) * receptive))
    return random.uniform(-bound, bound, shape).astype(np.float32)


class NotSupported(Exception):
    """The peer has no way to run this workload."""


def serve(version, make, described=Workload, difference=None):
    """Answers requests, one JSON a line. make(described(name), form) returns run(steps), which returns a
    loss; it may throw NotSupported. For an evaluation a step is a pass over the whole set.
    difference(described(name), run, file), after one step, is that of the results of ours in a file."""
    forms = {}
    protocol = sys.stdout
    sys.stdout = sys.stderr  # what libraries print must not become an answer
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = _answer(request, version, make, described, difference, forms)
        except NotSupported as error:
            reply = {"not_supported": str(error)}
        except Exception as error:  # the driver lists it as not measured, with the reason
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=protocol, flush=True)


def megabytes(key):
    """Of a line of /proc/self/status, such as VmRSS."""
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def forget_peak():
    """From here on the peak of resident memory is that of what follows."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def _answer(request, version, make, described, difference, forms):
    if "version" in request:
        return {"version": version}
    if "peak" in request:
        return {"peak_mb": megabytes("VmHWM"), "bare_mb": forms["bare"]}
    if "setup" in request:
        key = request["setup"], request["form"]
        if forms.get("") != key[0]:  # the forms of one workload at a time
            forms.clear()
            forms[""], forms["bare"] = key[0], megabytes("VmRSS")
        start = time.perf_counter()
        run = make(described(key[0]), key[1])
        forget_peak()
        loss = run(1)
        forms[key[1]] = run
        reply = {"setup_s": time.perf_counter() - start, "loss": float(loss)}
        if "compare" in request:
            reply["difference"] = difference(described(key[0]), run, request["compare"])
        return reply
    run = forms[request["form"]]
    multiple = getattr(run, "multiple", 1)  # a form may take only so many steps at once
    steps = max(1, round(request["steps"] / multiple)) * multiple
    if request.get("warm", 1):
        run(request.get("warm", 1))
    start = time.perf_counter()
    loss = run(steps)
    return {"ms": (time.perf_counter() - start) * 1e3 / steps, "loss": float(loss)}
