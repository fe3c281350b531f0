"""PyTensor, the nearest relative of Bitale. Forms: "numba", "c". It has no convolutions of images."""

import itertools

import numpy as np
import pytensor
import pytensor.tensor as pt

import common

MODES = {"numba": "NUMBA", "c": "CVM"}


def make(workload, form):
    if workload.convolutional:
        raise common.NotSupported("no convolution and pooling of images")
    images, labels = workload.images()
    images = pytensor.shared(images.reshape(len(images), -1), borrow=True)
    labels = pytensor.shared(labels.astype(np.int32), borrow=True)
    order = pytensor.shared(workload.order(), borrow=True)

    i = pt.lscalar("i")
    rows = order[i * workload.batch:(i + 1) * workload.batch]
    x = pt.cast(images[rows], "float32")
    h = (x - pt.mean(x)) / np.float32(128) if workload.normalise == "mean" else (x - 128) / np.float32(64)
    y = labels[rows]
    values = {f"{kind}{index}": pytensor.shared(value) for index, kind, value in workload.parameters()}
    for index, layer in enumerate(workload.layers):
        if layer[0] == "dense":
            h = pt.dot(h, values[f"w{index}"]) + values[f"b{index}"]
        else:
            h = {"tanh": pt.tanh}[layer[0]](h)
    logp = pt.special.log_softmax(h, axis=1)
    loss = -pt.mean(logp[pt.arange(y.shape[0]), y])
    params = list(values.values())
    rate = np.float32(workload.optimizer["rate"])
    updates = [(p, p - rate * g) for p, g in zip(params, pytensor.grad(loss, params))]
    step = pytensor.function([i], loss, updates=updates, mode=MODES[form])
    step.trust_input = True
    numbers = itertools.cycle([np.array(k) for k in range(workload.count // workload.batch)])

    def run(steps):
        for k in itertools.islice(numbers, steps):
            loss = step(k)
        return loss

    return run


if __name__ == "__main__":
    pytensor.config.floatX = "float32"
    common.serve(pytensor.__version__, make)
