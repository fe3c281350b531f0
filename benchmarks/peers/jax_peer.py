"""JAX: a jitted step called once a step, and lax.scan over many steps in one call.

Forms: "jit", "scan", both also with "nhwc": convolutions and images with channels last.
"""

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np

import common

# A scan of so many steps a call: enough to hide the call, few enough for the slow networks.
SCAN = {"a": 100, "b": 100, "c": 50, "d": 2, "e": 10}


def network(workload, nhwc, training):
    """logits(values, x, key)"""

    def logits(values, h, key):
        for index, layer in enumerate(workload.layers):
            kind = layer[0]
            if kind == "conv":
                border = layer[2] // 2 if layer[3] == "half" else 0
                axes = ("NHWC", "HWIO", "NHWC") if nhwc else ("NCHW", "OIHW", "NCHW")
                h = jax.lax.conv_general_dilated(h, values[f"w{index}"], (1, 1), [(border, border)] * 2,
                                                 dimension_numbers=axes)
            elif kind == "bias":
                b = values[f"b{index}"]
                h = h + (b if nhwc else b[:, None, None])
            elif kind == "pool":
                window, stride = ((1, n, n, 1) if nhwc else (1, 1, n, n) for n in layer[1:])
                h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, window, stride, "VALID")
            elif kind == "dense":
                h = h.reshape(h.shape[0], -1) @ values[f"w{index}"] + values[f"b{index}"]
            elif kind == "dropout":
                if training:
                    key, own = jax.random.split(key)
                    keep = 1 - layer[1]
                    h = jnp.where(jax.random.bernoulli(own, keep, h.shape), h / keep, 0)
            else:
                h = {"relu": jax.nn.relu, "tanh": jnp.tanh}[kind](h)
        return h

    return logits


def crossentropy(logits, y):
    logp = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(logp, y[:, None], 1))


def normalised(workload, pixels):
    x = pixels.astype(jnp.float32)
    return (x - jnp.mean(x)) / 128 if workload.normalise == "mean" else (x - 128) / 64


def updated(workload, values, gradients, states):
    options = workload.optimizer
    rate = options["rate"]
    new_values, new_states = {}, {"step": states["step"] + 1, "m": {}, "v": {}}
    if options["name"] == "adam":
        t = new_states["step"].astype(jnp.float32)
        rate = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    for name, p in values.items():
        g = gradients[name]
        if options["name"] == "sgd":
            new_values[name] = p - rate * g
            continue
        m, v = states["m"].get(name), states["v"].get(name)
        if options["name"] == "momentum":
            m = options["momentum"] * m - rate * g
            delta = -m
        elif options["name"] == "adam":
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            delta = rate * m / (jnp.sqrt(v) + 1e-8)
        else:
            m = 0.95 * m + 0.05 * g * g
            d = jnp.sqrt(v + 1e-6) / jnp.sqrt(m + 1e-6) * g
            v = 0.95 * v + 0.05 * d * d
            delta = rate * d
        new_values[name] = p - delta
        new_states["m"][name] = m
        if v is not None:
            new_states["v"][name] = v
    return new_values, new_states


def initial(workload, nhwc):
    values = {}
    for index, kind, value in workload.parameters():
        if nhwc and value.ndim == 4:
            value = value.transpose(2, 3, 1, 0)
        values[f"{kind}{index}"] = jnp.asarray(value)
    kinds = {"sgd": "", "momentum": "m", "adam": "mv", "adadelta": "mv"}[workload.optimizer["name"]]
    states = {kind: {name: jnp.zeros_like(p) for name, p in values.items()} if kind in kinds else {}
              for kind in "mv"}
    return values, {**states, "step": jnp.int32(0)}


def make(workload, form, length=None):
    """`length`: steps of one scan."""
    words = form.split()
    nhwc = "nhwc" in words
    images, labels = workload.images()
    if nhwc:
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    if not workload.convolutional:
        images = images.reshape(len(images), -1)
    images, labels = jnp.asarray(images), jnp.asarray(labels.astype(np.int32))
    values, states = initial(workload, nhwc)
    logits = network(workload, nhwc, not workload.evaluation)
    if workload.evaluation:
        return evaluation(workload, words, logits, values, images, labels)

    order = jnp.asarray(workload.order())
    batch, per_epoch = workload.batch, workload.count // workload.batch

    def step(state, i, images, labels, order):
        values, states, key = state
        key, own = jax.random.split(key) if any(l[0] == "dropout" for l in workload.layers) else (key, key)
        rows = jax.lax.dynamic_slice(order, (i * batch,), (batch,))
        x, y = normalised(workload, images[rows]), labels[rows]
        loss, gradients = jax.value_and_grad(lambda v: crossentropy(logits(v, x, own), y))(values)
        values, states = updated(workload, values, gradients, states)
        return (values, states, key), loss

    state = [(values, states, jax.random.key(1))]
    if words[0] == "jit":
        compiled = jax.jit(step, donate_argnums=0)
        numbers = itertools.cycle(jnp.arange(per_epoch))

        def run(steps):
            losses = []
            for i in itertools.islice(numbers, steps):
                state[0], loss = compiled(state[0], i, images, labels, order)
                losses.append(loss)
            return losses[-1].block_until_ready()

        return run

    length = length or SCAN[workload.name[0]]

    def many(state, first, images, labels, order):
        return jax.lax.scan(lambda s, i: step(s, i % per_epoch, images, labels, order), state,
                            first + jnp.arange(length))

    compiled = jax.jit(many, donate_argnums=0)
    first = [0]

    def run(steps):
        for _ in range(max(1, steps // length)):
            state[0], losses = compiled(state[0], first[0] % per_epoch, images, labels, order)
            first[0] += length
        return losses[-1].block_until_ready()

    run.multiple = length
    return run


def evaluation(workload, words, logits, values, images, labels):
    """Forms end in "batch N", the size of the chunks that the test set is cut into; scan goes over them."""
    batch = int(words[words.index("batch") + 1])
    count = workload.count // batch

    def chunk(values, i, images, labels):
        x = normalised(workload, jax.lax.dynamic_slice_in_dim(images, i * batch, batch))
        y = jax.lax.dynamic_slice_in_dim(labels, i * batch, batch)
        out = logits(values, x, None)
        return crossentropy(out, y), jnp.sum(jnp.argmax(out, 1) != y)

    if words[0] == "scan":
        whole = jax.jit(lambda values, images, labels: jax.lax.map(
            lambda i: chunk(values, i, images, labels), jnp.arange(count)))

        def run_whole(steps):
            for _ in range(steps):
                losses = whole(values, images, labels)[0].block_until_ready()
            return losses.mean()

        return run_whole
    compiled = jax.jit(chunk)
    numbers = list(jnp.arange(count))

    def run(steps):
        for _ in range(steps):
            scores = [compiled(values, i, images, labels) for i in numbers]
        return sum(float(loss) for loss, _ in scores) / count

    return run


if __name__ == "__main__":
    cache = os.environ.get("BITALE_BENCH_CACHE")
    if cache:
        jax.config.update("jax_compilation_cache_dir", os.path.join(cache, "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    common.serve(jax.__version__, make)
