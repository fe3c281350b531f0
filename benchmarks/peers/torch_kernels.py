"""PyTorch on the kernels (g). Forms: "eager", "compile"; of convolutions and pooling also "channels_last".

Results go into tensors that exist already wherever PyTorch's function takes one.
"""

import os

import torch
import torch.nn.functional as F

import common

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


def rand(shape, channels_last=False):
    x = torch.rand(shape) - 0.5
    return x.contiguous(memory_format=torch.channels_last) if channels_last and len(shape) == 4 else x


def bytes_of(shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def product(k):
    a, b = rand((k["m"], k["k"])), rand((k["k"], k["n"]))
    if k["form"][0] == "T":
        a = a.t().contiguous().t()
    if k["form"][1] == "T":
        b = b.t().contiguous().t()
    out = torch.empty(k["m"], k["n"])
    return lambda: torch.mm(a, b, out=out)


def convolution(k, channels_last):
    shape, side = k["shape"], k["kernel"]
    border = side // 2 if k["border"] == "half" else 0
    x, w = rand(shape, channels_last), rand((k["filters"], shape[1], side, side), channels_last)
    g = F.conv2d(x, w, padding=border)
    if k["pass"] == "forward":
        return lambda: F.conv2d(x, w, padding=border)
    mask = [k["pass"] == "data", k["pass"] == "weights", False]
    return lambda: torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [border] * 2, [1, 1], False,
                                                       [0, 0], 1, mask)


def pooling(k, channels_last):
    x = rand(k["shape"], channels_last)
    window, stride = [k["window"]] * 2, [k["stride"]] * 2
    g = torch.ones_like(F.max_pool2d(x, window, stride))

    def run():
        y, winners = torch.ops.aten.max_pool2d_with_indices(x, window, stride)
        return y, torch.ops.aten.max_pool2d_with_indices_backward(g, x, window, stride, [0, 0], [1, 1], False,
                                                                  winners)

    return run


def update(k, compiled):
    parameters = [torch.nn.Parameter(rand(shape)) for shape in k["shapes"]]
    for p in parameters:
        p.grad = rand(p.shape)
    name = k["optimizer"]
    if name in ("sgd", "momentum"):
        optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9 if name == "momentum" else 0,
                                    fused=not compiled, foreach=compiled)
    elif name == "adam":
        optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=not compiled, foreach=compiled)
    else:
        optimizer = torch.optim.Adadelta(parameters, lr=1.0, rho=0.95, eps=1e-6, foreach=True)
    return optimizer.step


def kernel(k, compiled, channels_last):
    op = k["op"]
    if op == "gemm":
        return product(k)
    if op == "conv":
        return convolution(k, channels_last)
    if op == "pool":
        return pooling(k, channels_last)
    if op == "update":
        return update(k, compiled)
    shape = k["shape"]
    if op == "normalise":
        x, out = bytes_of(shape), torch.empty(shape)
        if compiled:
            return lambda: out.copy_((x.float() - 33.3) / 128)
        return lambda: torch.sub(x, 33.3, out=out).div_(128)
    if op == "mean":
        x = bytes_of(shape)
        return lambda: x.sum(dtype=torch.int64).float() / x.numel()
    if op == "softmax":
        x, out = rand(shape), torch.empty(shape)
        if compiled:
            return lambda: out.copy_(torch.softmax(x, 1))
        return lambda: torch.softmax(x, 1, out=out)
    if op == "columns":
        x, out = rand(shape), torch.empty(shape[1])
        return lambda: torch.sum(x, 0, out=out)
    if op == "transpose":
        x = rand(shape).permute(k["axes"])
        out = torch.empty(x.shape)
        return lambda: out.copy_(x)
    if op == "layer_norm":
        x, scale, shift = rand(shape), rand(shape[1:]), rand(shape[1:])
        return lambda: F.layer_norm(x, shape[1:], scale, shift)
    if op == "gather":
        x, rows = bytes_of(shape), torch.randperm(shape[0])[:k["count"]]
        out = torch.empty(k["count"], shape[1], dtype=torch.uint8)
        return lambda: torch.index_select(x, 0, rows, out=out)
    raise common.NotSupported(op)


def make(k, form):
    torch._dynamo.reset()
    compiled = form.startswith("compile")
    step = kernel(k, compiled, form.endswith("channels_last"))
    if compiled:
        step = torch.compile(step, dynamic=False)

    def run(steps):
        with torch.no_grad():
            for _ in range(steps):
                step()
        return 0

    if compiled and k["op"] == "update":
        run(3)  # an optimizer has its state, and so its last compilation, after the first steps only
    return run


if __name__ == "__main__":
    common.serve(torch.__version__, make, common.kernel)
