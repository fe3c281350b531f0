"""How fast a step could be at best: the operations that it cannot do without at the measured peak of fused
multiply-adds, and the bytes that it must stream at the measured speed of copies.

Operations: every product and convolution forward, and both gradients of each but the gradient of the data.
The gradient of a max-pooling is zero except at its winners, so the gradients of the convolution before it
need one product a window instead of one an output.
Bytes: each parameter and each value of the optimizer's state is read and written once (at the speed of a
copy of that size), and the images of the minibatch are read as bytes from a set larger than the caches (at
the speed of a long read).
"""

import math

STATES = {"sgd": 0, "momentum": 1, "adam": 2, "adadelta": 2}


def network_of(description, name):
    workload = description["workloads"][name]
    return description["workloads"][workload["evaluates"]] if "evaluates" in workload else workload


def layers_of(network, shape):
    """(kind, forward operations an image, share of them that is not zero in the gradient, parameters)"""
    result, layers = [], network["layers"]
    for index, layer in enumerate(layers):
        kind = layer[0]
        if kind == "conv":
            _, filters, size, border = layer
            weights = filters * shape[0] * size * size
            lost = 0 if border == "half" else size - 1
            shape = (filters, shape[1] - lost, shape[2] - lost)
            live = _live(layers[index + 1:], shape)
            result.append((kind, 2 * weights * shape[1] * shape[2], live, weights))
        elif kind == "bias":
            result.append((kind, 0, 1, shape[0]))
        elif kind == "pool":
            shape = (shape[0],) + _pooled(layer, shape)
        elif kind == "dense":
            weights = math.prod(shape) * layer[1]
            shape = (layer[1],)
            result.append((kind, 2 * weights, 1, weights + layer[1]))
    return result


def _pooled(layer, shape):
    return tuple((n - layer[1]) // layer[2] + 1 for n in shape[1:])


def _live(following, shape):
    """Share of a convolution's outputs whose gradient is not zero: the winners of the pooling after it."""
    for layer in following:
        if layer[0] == "pool":
            return math.prod(_pooled(layer, shape)) / (shape[1] * shape[2])
        if layer[0] not in ("bias", "relu", "tanh"):
            return 1
    return 1


def operations(description, name):
    """Of one step, or of one evaluation of the whole set."""
    workload = description["workloads"][name]
    data = description["data"][workload["data"]]
    layers = layers_of(network_of(description, name), tuple(data["shape"]))
    if "evaluates" in workload:
        return data["test"] * sum(layer[1] for layer in layers)
    total, first = 0, True
    for kind, forward, live, _ in layers:
        if kind in ("conv", "dense"):
            total += forward + forward * live * (1 if first else 2)
            first = False
    return total * workload["batch"]


def streamed(description, name):
    """(bytes of parameters and states read and written, bytes of images read)"""
    workload = description["workloads"][name]
    data = description["data"][workload["data"]]
    if "evaluates" in workload:
        return 0, data["test"] * math.prod(data["shape"])
    network = network_of(description, name)
    count = sum(layer[3] for layer in layers_of(network, tuple(data["shape"])))
    states = STATES[network["optimizer"]["name"]]
    return count * 4 * 2 * (1 + states), workload["batch"] * math.prod(data["shape"])


def kernel_cost(k):
    """(operations, bytes) of a kernel (g): each operand read once, each result written once."""
    op = k["op"]
    if op == "gemm":
        m, n, depth = k["m"], k["n"], k["k"]
        return 2 * m * n * depth, 4 * (m * n + m * depth + n * depth)
    if op == "conv":
        layer = ["conv", k["filters"], k["kernel"], k["border"]]
        _, forward, _, weights = layers_of({"layers": [layer]}, tuple(k["shape"][1:]))[0]
        images, inputs = k["shape"][0], math.prod(k["shape"])
        outputs = images * forward // (2 * weights) * k["filters"]
        return images * forward, 4 * (inputs + weights + outputs)
    if op == "pool":
        n, channels, *sides = k["shape"]
        outputs = n * channels * math.prod(_pooled(("pool", k["window"], k["stride"]), (channels, *sides)))
        return 0, 8 * (math.prod(k["shape"]) + outputs)
    if op == "update":
        return 0, sum(math.prod(s) for s in k["shapes"]) * 4 * (3 + 2 * STATES[k["optimizer"]])
    elements = math.prod(k["shape"])
    if op == "gather":
        return 0, 2 * k["count"] * k["shape"][1]
    return 0, elements * {"normalise": 5, "mean": 1, "columns": 4}.get(op, 8)


def kernel_floor_ms(k, roofs):
    """The larger of the time of the operations and that of the bytes; a mean of bytes only reads."""
    operations_of, size = kernel_cost(k)
    speed = roofs.read_gbs(size) if k["op"] in ("mean", "columns") else roofs.copy_gbs(size)
    return max(operations_of / roofs.gflops, size / speed) * 1e-6


def floor_ms(description, name, roofs):
    updated, read = streamed(description, name)
    return (operations(description, name) / roofs.gflops + updated / roofs.copy_gbs(updated) +
            read / roofs.long_read_gbs()) * 1e-6
