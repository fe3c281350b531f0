"""PyTorch on the rows (h), as a careful user writes them. Forms: "eager" and "compile", followed by a style.

Results go into tensors that exist already wherever PyTorch's function takes one. Of gradients, "compile step"
is the whole step as one compiled graph, "compile model" the value compiled and differentiated from outside.
Whole data sets of bytes: "chunks" widens a part after the other, "kept" has widened them before it begins.
"""

import json
import os

import numpy as np
import torch
import torch.nn.functional as F

import common
import values

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
CHUNK = 4096  # rows of a data set: 13 MB as float32
WEIGHTS = 64  # rows of weights: 1 MB as float32


def floats(shape, salt, low=-1.0, high=1.0, layout=torch.contiguous_format):
    x = torch.from_numpy(values.floats(shape, salt, low, high))
    return x.contiguous(memory_format=layout) if x.dim() == 4 else x


def octets(shape, salt, dtype=np.uint8):
    return torch.from_numpy(values.octets(shape, salt, dtype))


def places(count, salt, below):
    return torch.from_numpy(values.places(count, salt, below))


def layout_of(style):
    return torch.channels_last if style == "channels_last" else torch.contiguous_format


def into(compute, compiled):
    """A step that writes to what its first call has made: compute(out) of a function that takes `out`."""
    if compiled:
        return lambda: compute(None)
    out = compute(None)
    return lambda: compute(out)


def reduction(k, style, compiled):
    x = octets(k["shape"], 1) if k.get("dtype") == "uint8" else floats(k["shape"], 1)
    x = x.view(k["as"]) if "as" in k else x
    x = x.permute(k["turned"]) if "turned" in k else x
    axes, how = k["axes"], k["how"]
    if how == "sum":
        return into(lambda out: torch.sum(x, axes, out=out), compiled)
    if how == "max":
        return into(lambda out: torch.amax(x, axes, out=out), compiled)
    if how == "standardised":
        def standardise(out):
            variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
            return torch.div(x - mean, torch.sqrt(variance + 1e-5), out=out)
        return into(standardise, compiled)
    if how == "masked":
        mask = floats(k["shape"], 2) > 0
        return into(lambda out: torch.sum(torch.where(mask, torch.exp(x), 0), axes, out=out), compiled)
    if how == "softmax":
        return into(lambda out: torch.softmax(x, axes[0], out=out), compiled)
    if how == "mean_scaled":
        return into(lambda out: torch.mean(x.float() / 255, axes, out=out), compiled)
    if how == "mean_shifted":
        return into(lambda out: torch.mean((x.float() - 33.3) / 128, axes, out=out), compiled)
    return into(lambda out: getattr(torch, how)(x, axes[0], out=out), compiled)


def gradient_of_prod(k, style, compiled):
    x, g = floats(k["shape"], 1, 0.95, 1.05), floats(k["shape"][:1], 2)
    return derived(lambda x: x.prod(1), [x], g, style, False)


def scan(k, style, compiled):
    x, how = floats(k["shape"], 1), getattr(torch, k["how"])
    if "of" in k:
        return into(lambda out: how(torch.exp(x), k["axis"], out=out), compiled)
    return into(lambda out: how(x, k["axis"], out=out), compiled)


def gradient_of_topk(k, style, compiled):
    x, g = floats(k["shape"], 1), floats([k["shape"][0], k["k"]], 2)
    return derived(lambda x: torch.topk(x, k["k"], 1).values, [x], g, style, False)


def order(k, style, compiled):
    x, axis = floats(k["shape"], 1), k["axis"]
    if "k" in k:
        return into(lambda out: torch.topk(x, k["k"], axis, out=out), compiled)
    return into(lambda out: torch.sort(x, axis, out=out), compiled)


def derived(value, operands, g, style, with_value):
    """The gradients of sum(value(*operands) * g), and the value before them."""
    if style == "step":
        def step():
            y, gradients_of = torch.func.vjp(value, *operands)
            return [y, *gradients_of(g)] if with_value else list(gradients_of(g))

        return torch.compile(step, dynamic=False)
    if style == "model":
        value = torch.compile(value, dynamic=False)
    for x in operands:
        x.requires_grad_()

    def step():
        with torch.enable_grad():
            y = value(*operands)
            gradients = torch.autograd.grad(y, operands, g)
        return [y.detach(), *gradients] if with_value else list(gradients)

    return step


def settings(k):
    """Of a convolution, in the order of convolution_backward."""
    return {"stride": [k.get("stride", 1)] * 2, "padding": [k.get("pad", 0)] * 2,
            "dilation": [k.get("dilation", 1)] * 2}


def convolution(k, style, compiled):
    layout, side, groups, how = layout_of(style), k["kernel"], k.get("groups", 1), settings(k)
    x = floats(k["shape"], 1, layout=layout)
    w = floats([k["filters"], k["shape"][1] // groups, side, side], 2, layout=layout)
    if k["pass"] == "forward":
        return lambda: F.conv2d(x, w, groups=groups, **how)
    g = floats(list(F.conv2d(x, w, groups=groups, **how).shape), 3, layout=layout)
    mask = [k["pass"] == "data", k["pass"] == "weights", False]

    def step():
        return torch.ops.aten.convolution_backward(g, x, w, None, *how.values(), False, [0, 0], groups,
                                                   mask)[mask.index(True)]

    return step


def pooling(k, style, compiled):
    window, stride, layout = [k["window"]] * 2, [k["stride"]] * 2, layout_of(style)
    if k["dtype"] == "uint8":
        x = octets(k["shape"], 1).contiguous(memory_format=layout)
    else:
        x = floats(k["shape"], 1, layout=layout)
    if k["pass"] == "forward":
        return lambda: F.max_pool2d(x, window, stride)
    g = floats(list(F.max_pool2d(x, window, stride).shape), 2, layout=layout)

    def step():
        _, winners = torch.ops.aten.max_pool2d_with_indices(x, window, stride)
        return torch.ops.aten.max_pool2d_with_indices_backward(g, x, window, stride, [0, 0], [1, 1], False,
                                                               winners)

    return step


def pooling_behind(k, style, compiled):
    layout, side = layout_of(style), k["kernel"]
    x = floats(k["shape"], 1, layout=layout)
    w = floats([k["filters"], k["shape"][1], side, side], 2, layout=layout)
    return lambda: F.max_pool2d(F.conv2d(x, w), k["window"], k["stride"])


def lookup(k, style, compiled):
    shape, count = k["table"], k["count"]
    table, at = floats(shape, 1), places(count, 2, shape[0])
    if k["pass"] == "forward":
        return into(lambda out: torch.index_select(table, 0, at, out=out), compiled)
    g, rate = floats([count, shape[1]], 3), 0.001
    if style == "step":
        def step():
            gradient = torch.func.grad(lambda t: (F.embedding(at, t) * g).sum())(table)
            return table.sub_(gradient * rate)

        return torch.compile(step, dynamic=False)
    parameter = torch.nn.Parameter(table)
    sparse = style == "sparse"
    optimizer = torch.optim.SGD([parameter], lr=rate, fused=not sparse)

    def step():
        with torch.enable_grad():
            optimizer.zero_grad(set_to_none=True)
            (F.embedding(at, parameter, sparse=sparse) * g).sum().backward()
        optimizer.step()
        return parameter.detach()

    return step


def windows(k, style, compiled):
    x, w = floats([k["n"]], 1), floats([k["length"]], 2)

    def forward(series):
        return series.unfold(0, k["length"], k["hop"]) @ w

    if k["pass"] == "forward":
        return lambda: forward(x)
    return lambda: torch.func.grad(lambda series: forward(series).square().sum())(x)


def batched_product(k, style, compiled):
    heads, m, n, depth = k["heads"], k["m"], k["n"], k["k"]
    turned = k["form"] == "NT"
    matrix = [n, depth] if turned else [depth, n]
    if k["written"] == "one":
        a, b = floats([heads * m, depth], 1), floats(matrix, 2)
        return into(lambda out: torch.mm(a, b.t() if turned else b, out=out), compiled)
    a, b = floats([heads, m, depth], 1), floats([heads, *matrix], 2)
    return into(lambda out: torch.bmm(a, b.transpose(1, 2) if turned else b, out=out), compiled)


def product(k, style, compiled):
    a, b = floats([k["m"], k["k"]], 1), floats([k["k"], k["n"]], 2)
    if k.get("dtype") == "float64":
        a, b = a.double(), b.double()
    if "sum" in k:
        return lambda: torch.mm(a, b).sum()
    return into(lambda out: torch.mm(a, b, out=out), compiled)


def one_hot(k, style, compiled):
    numbers, table = places(k["rows"], 1, k["n"]), floats([k["n"], k["k"]], 2)
    return into(lambda out: torch.index_select(table, 0, numbers, out=out), compiled)


def integer_product(k, style, compiled):
    a, b = octets([k["m"], k["k"]], 1, np.int8), octets([k["k"], k["n"]], 2, np.int8)
    scale = floats([k["n"]], 3) if k["written"] == "scaled" else None
    multiply = (lambda: torch._int_mm(a, b).float()) if style == "int_mm" else (lambda: torch.mm(a.float(), b.float()))
    if scale is not None:
        return lambda: multiply() * scale / 127
    return multiply


def distances(k, style, compiled):
    x, y = floats([k["n"], k["k"]], 1), floats([k["m"], k["k"]], 2)
    if style == "differences":
        return into(lambda out: torch.sum((x[:, None] - y[None]).square(), 2, out=out), compiled)
    # cdist of many points multiplies instead, unless it is told not to.
    return lambda: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


def weighted_mean(k, style, compiled):
    scores = floats([k["heads"], k["length"], k["length"]], 1)
    v = floats([k["heads"], k["length"], k["width"]], 2)
    return into(lambda out: torch.bmm(torch.softmax(scores, -1), v, out=out), compiled)


def attention(k, style, compiled):
    shape = [k["heads"], k["length"], k["width"]]
    shared = k.get("shared", 1)
    q = floats(shape, 1)
    keys, v = (floats([k["heads"] // shared, *shape[1:]], salt) for salt in (2, 3))
    scale = k["width"]**-0.5

    def value(q, keys, v):
        if shared > 1:
            keys, v = keys.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)
        return torch.bmm(torch.softmax(torch.bmm(q * scale, keys.transpose(1, 2)), -1), v)

    if k["pass"] == "forward":
        return lambda: value(q, keys, v)
    return derived(value, [q, keys, v], floats(shape, 4), style, True)


def dequantized(k, style, compiled):
    shape = k["shape"]
    x, w = floats([k["batch"], shape[0]], 1), octets(shape, 2, np.int8)
    scale = floats(shape[1:], 3, 0.001, 0.01)
    if style == "packed":
        w = w.t().contiguous()
        return lambda: torch.ops.aten._weight_int8pack_mm(x, w, scale)
    if style == "chunks":
        def step():
            total = torch.zeros(k["batch"], shape[1])
            for first in range(0, shape[0], WEIGHTS):
                rows = slice(first, first + WEIGHTS)
                total.addmm_(x[:, rows], w[rows].float())
            return total.mul_(scale)

        return step
    if compiled:
        return lambda: torch.mm(x, w.float()) * scale
    return lambda: torch.mm(x, w.float()).mul_(scale)


def concatenation(k, style, compiled):
    parts = [floats(k["shape"], salt) for salt in range(k["parts"])]
    return into(lambda out: torch.cat(parts, k["axis"], out=out), compiled)


def doubled(k, style, compiled):
    x = floats(k["shape"], 1)
    return into(lambda out: torch.mul(x, 2, out=out), compiled)


def crossentropy(k, style, compiled):
    logits, labels = floats(k["shape"], 1), places(k["shape"][0], 2, k["shape"][1])
    return lambda: F.cross_entropy(logits, labels)


def random(k, style, compiled):
    normal, out = k["how"] == "normal", torch.empty(k["count"])
    if compiled:
        return lambda: torch.randn(k["count"]) if normal else torch.rand(k["count"])
    return out.normal_ if normal else out.uniform_


def widened(x, in_place):
    return x.float().div_(255) if in_place else x.float() / 255


def covariance(k, style, compiled):
    images = octets(k["shape"], 1)
    count, width = k["shape"]
    if style == "chunks":
        def step():
            total = torch.zeros(width, width)
            for part in images.split(CHUNK):
                x = widened(part, True)
                total.addmm_(x.t(), x)
            return total.div_(count)

        return step

    def step():
        x = widened(images, not compiled)
        return torch.mm(x.t(), x) / count

    return step


def k_means(k, style, compiled):
    images = octets(k["shape"], 1)
    centres = floats([k["centres"], k["shape"][1]], 2, 0, 1)
    rows = torch.arange(k["shape"][0])

    def sums(x, lengths):
        nearest = torch.addmm(lengths, x, centres.t(), alpha=-2).argmin(1)
        if compiled:
            members = (nearest[:, None] == torch.arange(k["centres"])).float()
        else:
            members = torch.zeros(len(x), k["centres"])
            members[rows[:len(x)], nearest] = 1
        return torch.mm(members.t(), x), members.sum(0)

    def moved(total, sizes):
        return centres.copy_(total / sizes.clamp(min=1)[:, None])

    if style == "kept":
        images = widened(images, True)
    if style == "chunks":
        def step():
            lengths, parts = centres.square().sum(1), []
            for part in images.split(CHUNK):
                parts.append(sums(widened(part, True), lengths))
            return moved(sum(p[0] for p in parts), sum(p[1] for p in parts))

        return step

    def step():
        x = images if style == "kept" else widened(images, not compiled)
        return moved(*sums(x, centres.square().sum(1)))

    return step


def logistic(k, style, compiled):
    shape, classes, rate = k["shape"], k["classes"], 0.1
    images, labels = octets(shape, 1), places(shape[0], 2, classes)
    w, b = floats([shape[1], classes], 3, -0.1, 0.1), torch.zeros(classes)

    def normalised(x):
        return (x.float() - 33.3) / 128 if compiled else x.float().sub_(33.3).div_(128)

    if style == "kept":
        images = normalised(images)
    if compiled:
        def loss_of(w, b):
            x = images if style == "kept" else normalised(images)
            return F.cross_entropy(torch.addmm(b, x, w), labels)

        def step():
            of_w, of_b = torch.func.grad(loss_of, (0, 1))(w, b)
            return w.sub_(of_w * rate), b.sub_(of_b * rate)

        return step
    parameters = [torch.nn.Parameter(w), torch.nn.Parameter(b)]
    optimizer = torch.optim.SGD(parameters, lr=rate, fused=True)
    size = CHUNK if style == "chunks" else shape[0]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.enable_grad():
            for x, y in zip(images.split(size), labels.split(size)):
                x = x if style == "kept" else normalised(x)
                logits = torch.addmm(parameters[1], x, parameters[0])
                (F.cross_entropy(logits, y, reduction="sum") / shape[0]).backward()
        optimizer.step()
        return [p.detach() for p in parameters]

    return step


def columns_in_turn(k, style, compiled):
    x = floats(k["shape"], 1)

    def step():
        y = torch.zeros(k["shape"][0])
        for i in range(k["shape"][1]):
            y = 0.9 * y + torch.sqrt(torch.abs(x[:, i] * y + 1))
        return y

    return step


OPS = {"reduce": reduction, "columns_in_turn": columns_in_turn, "prod_gradient": gradient_of_prod, "scan": scan, "order": order,
       "topk_gradient": gradient_of_topk, "conv": convolution, "pool": pooling, "conv_pool": pooling_behind,
       "lookup": lookup, "windows": windows, "product": product, "one_hot": one_hot,
       "integer_product": integer_product, "distances": distances, "batched": batched_product, "weighted_mean": weighted_mean,
       "attention": attention, "dequantized": dequantized, "concatenate": concatenation, "double": doubled,
       "crossentropy": crossentropy, "random": random, "covariance": covariance, "k_means": k_means,
       "logistic": logistic}


def make(k, form):
    torch._dynamo.reset()
    kind, _, style = form.partition(" ")
    compiled = kind == "compile"
    step = OPS[k["op"]](k, style, compiled)
    if compiled and style not in ("step", "model"):  # these compile themselves
        step = torch.compile(step, dynamic=False)

    def run(steps):
        with torch.no_grad():
            for _ in range(steps):
                results = step()
        run.results = results
        return 0

    return run


def difference(k, run, path):
    """Of our first results from those of the last step of `run`."""
    results = [run.results] if isinstance(run.results, torch.Tensor) else run.results
    return values.difference([r.contiguous().numpy() for r in results], path, k["op"] == "random")


if __name__ == "__main__":
    common.serve(torch.__version__, make, common.shape, difference)
