"""The rows (h): the same sums in other shapes and forms. Each is built within a limit, its first result is
compared with a peer's, and its time with that of the rows that it should be like."""

import math
import os
import tempfile

from . import participants, rounds

TOLERANCE = 1e-4  # of the largest difference of a result, as a share of its largest magnitude
CALL_LIMIT_S = 120  # for the first call of a row


def cost(k):
    """(operations, bytes, whether they are only read): each operand read once, each result written once.
    Operations are those of products and convolutions."""
    return COSTS[k["op"]](k)


def _reduce(k):
    size = (1 if k.get("dtype") == "uint8" else 4) * math.prod(k["shape"])
    shape = k.get("as", k["shape"])
    shape = [shape[axis] for axis in k["turned"]] if "turned" in k else shape
    if k["how"] in ("standardised", "softmax"):
        return 0, 2 * size, False
    left = math.prod(n for axis, n in enumerate(shape) if axis not in k["axes"])
    whole = k["how"].startswith("arg") or (k["how"] == "sum" and "dtype" in k)  # results of 64 bits
    return 0, size + left * (8 if whole else 4), left * 8 < math.prod(shape)


def _places(k, length, kernel):
    return (length + 2 * k.get("pad", 0) - (kernel - 1) * k.get("dilation", 1) - 1) // k.get("stride", 1) + 1


def _convolved(k):
    n, _, height, width = k["shape"]
    return [n, k["filters"], _places(k, height, k["kernel"]), _places(k, width, k["kernel"])]


def _conv(k):
    """The same sums in all three passes: each reads two of the three tensors and writes the third."""
    per_output = k["shape"][1] // k.get("groups", 1) * k["kernel"]**2
    outputs = math.prod(_convolved(k))
    return 2 * outputs * per_output, 4 * (math.prod(k["shape"]) + k["filters"] * per_output + outputs), False


def _pooled(shape, k):
    return math.prod(shape[:2]) * math.prod((n - k["window"]) // k["stride"] + 1 for n in shape[2:])


def _pool(k):
    inputs, outputs = math.prod(k["shape"]), _pooled(k["shape"], k)
    if k["pass"] == "gradient":
        return 0, 4 * (2 * inputs + outputs), False
    return 0, (1 if k["dtype"] == "uint8" else 4) * (inputs + outputs), False


def _conv_pool(k):
    plain = {key: k[key] for key in ("shape", "filters", "kernel")}
    operations, size, _ = _conv(plain)
    return operations, size - 4 * math.prod(_convolved(plain)) + 4 * _pooled(_convolved(plain), k), False


def _lookup(k):
    """A step reads the gradient and the rows that it writes."""
    elements = k["count"] * k["table"][1]
    return 0, 8 * k["count"] + 4 * elements * (3 if k["pass"] == "step" else 2), False


def _windows(k):
    """The gradient reads the series and writes one like it, by way of two products with each weight."""
    count, gradient = (k["n"] - k["length"]) // k["hop"] + 1, k["pass"] == "gradient"
    return 2 * count * k["length"] * (2 if gradient else 1), 4 * k["n"] + 4 * (k["n"] if gradient else count), False


def _batched(k):
    heads, m, n, depth = k["heads"], k["m"], k["n"], k["k"]
    matrices = 1 if k["written"] == "one" else heads
    return 2 * heads * m * n * depth, 4 * (heads * m * (depth + n) + matrices * n * depth), False


def _product(k):
    m, n, depth = k["m"], k["n"], k["k"]
    wide = 2 if k.get("dtype") == "float64" else 1  # half as many fit into a register
    return 2 * m * n * depth * wide, 4 * wide * (m * depth + n * depth + (1 if "sum" in k else m * n)), False


def _one_hot(k):
    return 0, 8 * k["rows"] * k["k"] + 8 * k["rows"], False


def _integer_product(k):
    m, n, depth = k["m"], k["n"], k["k"]
    return 2 * m * n * depth, m * depth + n * depth + 4 * m * n, False


def _distances(k):
    """A difference, and a square that is added, for each term."""
    n, m, depth = k["n"], k["m"], k["k"]
    return 3 * n * m * depth, 4 * (n * depth + m * depth + n * m), False


def _weighted_mean(k):
    heads, length, width = k["heads"], k["length"], k["width"]
    return 2 * heads * length**2 * width, 4 * heads * length * (length + 2 * width), False


def _attention(k):
    """Two products forward, four for the gradients; the scores need not be moved."""
    size = k["heads"] * k["length"] * k["width"]
    step = k["pass"] == "step"
    return 2 * size * k["length"] * (6 if step else 2), 4 * size * (8 if step else 4), False


def _dequantized(k):
    rows, columns = k["shape"]
    batch = k["batch"]
    return 2 * batch * rows * columns, rows * columns + 4 * (columns + batch * (rows + columns)), False


def _covariance(k):
    n, width = k["shape"]
    return 2 * n * width**2, n * width + 4 * width**2, False


def _k_means(k):
    n, width = k["shape"]
    return 4 * n * width * k["centres"], n * width + 8 * k["centres"] * width, False


def _logistic(k):
    n, width = k["shape"]
    return 4 * n * width * k["classes"], n * width + 8 * n + 8 * (width + 1) * k["classes"], False


def _order(k):
    """Values and positions, of as many as are asked for."""
    count = math.prod(k["shape"])
    return 0, 4 * count + 12 * count // k["shape"][k["axis"]] * k.get("k", k["shape"][k["axis"]]), False


COSTS = {"reduce": _reduce, "conv": _conv, "pool": _pool, "conv_pool": _conv_pool, "lookup": _lookup, "windows": _windows,
         "batched": _batched, "attention": _attention, "dequantized": _dequantized,
         "covariance": _covariance, "k_means": _k_means, "logistic": _logistic,
         "prod_gradient": lambda k: (0, 8 * math.prod(k["shape"]) + 4 * k["shape"][0], False),
         "scan": lambda k: (0, 8 * math.prod(k["shape"]), False), "order": _order,
         "topk_gradient": lambda k: (0, 8 * math.prod(k["shape"]) + 4 * k["shape"][0] * k["k"], False),
         "product": _product, "one_hot": _one_hot,
         "integer_product": _integer_product, "distances": _distances, "weighted_mean": _weighted_mean,
         "concatenate": lambda k: (0, 8 * k["parts"] * math.prod(k["shape"]), False),
         "double": lambda k: (0, 8 * math.prod(k["shape"]), False),
         "columns_in_turn": lambda k: (0, 4 * math.prod(k["shape"]) + 4 * k["shape"][0], True),
         "crossentropy": lambda k: (0, 4 * math.prod(k["shape"]) + 8 * k["shape"][0], True),
         "random": lambda k: (0, 4 * k["count"], False)}


def floor_ms(k, roofs):
    """The larger of the time of the operations and that of the bytes."""
    operations, size, read = cost(k)
    speed = roofs.read_gbs(size) if read else roofs.copy_gbs(size)
    return max(operations / roofs.gflops, size / speed) * 1e-6


def measure(session, start, peer, name, entry, forms, quick, limit_s):
    """start(): a process of ours, peer(name): one of a peer; each row has its own of ours, and where memory
    counts each form its own of the peer. limit_s: how long building a row may take."""
    outcome = rounds.Outcome()
    outcome.memory, outcome.difference = {}, None
    ours = start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "results")
            subjects = _ours(ours, name, file, limit_s, outcome)
            if subjects:
                _check(session, name, forms, file, outcome)
        rounds.prepare_peers(session, name, forms, quick, outcome)
        for subject in subjects:
            subject.probe()
        outcome.ours = subjects[0] if subjects else None
        if subjects + outcome.peers:
            rounds.run_rounds(session, ours, subjects + outcome.peers, session.seconds / 3, outcome)
        if entry.get("memory"):
            _memory(ours if subjects else None, peer, name, forms, outcome)
    finally:
        ours.end()
    return outcome


def _ours(ours, name, file, limit_s, outcome):
    """The row built, with its first results in a file; or else the reason why not."""
    try:
        outcome.setup = ours.ask(timeout=limit_s, setup=name)
    except participants.TimedOut:
        outcome.problems["ours"] = f"not built within {limit_s:g} s"
    except participants.Failed as error:
        outcome.problems["ours"] = f"not built: {error}"
    else:
        try:
            ours.ask(timeout=CALL_LIMIT_S, write=file)
            return [rounds.Subject(ours, "ours", "call", "call")]
        except participants.Failed as error:
            outcome.problems["ours"] = f"the first call failed: {error}"
    rounds.note(f"    ours: {outcome.problems['ours']}")
    return []


def _check(session, name, forms, file, outcome):
    """The difference of our first result from that of the first form that can be asked."""
    for form in forms:
        if form.process not in session.peers:
            continue
        try:
            reply = session.peers[form.process].ask(setup=name, form=form.form, compare=file)
            # A difference that is no number counts as the largest.
            outcome.difference = math.inf if reply["difference"] is None else reply["difference"]
            return
        except (participants.Failed, participants.NotSupported) as error:
            rounds.note(f"    compared with {form.title()}: {error}")


def _memory(ours, peer, name, forms, outcome):
    if ours:
        outcome.memory["ours"] = ours.ask(peak=True)
    for form in forms:
        participant = peer(form.process)
        if not participant:
            continue
        try:
            participant.ask(setup=name, form=form.form)
            outcome.memory[form.title()] = participant.ask(peak=True)
        except (participants.Failed, participants.NotSupported) as error:
            rounds.note(f"    memory of {form.title()}: {error}")
        finally:
            participant.end()


def facts(entry, outcome, outcomes):
    """What a row says beside the times."""
    operations, size, _ = cost(entry)
    ms = outcome.ours.median() if outcome.ours else None
    result = {"group": "h", "op": entry["op"], "bytes": size, "flops": operations,
              "gbs": ms and _r(size / ms * 1e-6), "gflops": ms and operations and _r(operations / ms * 1e-6)}
    if outcome.ours:
        result |= {key: _r(outcome.setup[key]) for key in ("compile_cpu_s", "kernels")}
    result |= {"like": entry.get("like"), "like_ratio": _like(entry, ms, outcomes)}
    if outcome.difference is not None:
        tolerance = entry.get("tolerance", TOLERANCE)
        result |= {"difference": _r(outcome.difference) if math.isfinite(outcome.difference) else None,
                   "tolerance": tolerance, "check": "same" if outcome.difference <= tolerance else "differs"}
    if outcome.memory:
        result["memory_mb"] = {who: {key: round(mb, 1) for key, mb in of_one.items()}
                               for who, of_one in outcome.memory.items()}
    return result


def _like(entry, ms, outcomes):
    """How many times what it should take the row does, where the other rows were measured too."""
    others = [outcomes.get(name) for name in entry.get("like", [])]
    if not others or ms is None or not all(other and other.ours for other in others):
        return None
    return _r(ms / sum(other.ours.median() for other in others))


def _r(value):
    return float(f"{value:.4g}")
