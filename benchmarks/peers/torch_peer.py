"""PyTorch: eager and torch.compile, with contiguous or channels-last convolutions.

Forms: "eager", "eager channels_last"; "compile step" (one compiled graph of gather, loss, gradients and
updates), "compile model" (the loss compiled with its gradient, the optimizer PyTorch's own), both also with
channels_last.
"""

import itertools
import os

import torch
import torch.nn.functional as F

import common

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


class Network(torch.nn.Module):
    def __init__(self, workload, channels_last):
        super().__init__()
        self.layers = workload.layers
        self.values = torch.nn.ParameterDict()
        self.channels_last = channels_last
        for index, kind, value in workload.parameters():
            tensor = torch.from_numpy(value)
            if kind == "w" and self.layers[index][0] == "dense":
                tensor = tensor.t().contiguous()  # PyTorch keeps [out, in]
            elif kind == "w" and channels_last:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            self.values[f"{kind}{index}"] = torch.nn.Parameter(tensor)

    def forward(self, h):
        skip = False
        for index, layer in enumerate(self.layers):
            kind = layer[0]
            if kind == "conv":
                # A bias right after a convolution is the convolution's own.
                skip = index + 1 < len(self.layers) and self.layers[index + 1][0] == "bias"
                bias = self.values[f"b{index + 1}"] if skip else None
                padding = layer[2] // 2 if layer[3] == "half" else 0
                h = F.conv2d(h, self.values[f"w{index}"], bias, padding=padding)
            elif kind == "bias":
                if not skip:
                    h = h + self.values[f"b{index}"].view(1, -1, 1, 1)
                skip = False
            elif kind == "pool":
                h = F.max_pool2d(h, layer[1], layer[2])
            elif kind == "dense":
                h = F.linear(h.flatten(1), self.values[f"w{index}"], self.values[f"b{index}"])
            elif kind == "dropout":
                h = F.dropout(h, layer[1], self.training)
            else:
                h = getattr(torch, kind)(h)
        return h


def normalised(workload, pixels, channels_last):
    x = pixels.float()
    x = (x - x.mean()) / 128 if workload.normalise == "mean" else (x - 128) / 64
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


def normalised_in_place(workload, pixels, channels_last):
    x = pixels.float()
    x = x.sub_(x.mean()).div_(128) if workload.normalise == "mean" else x.sub_(128).div_(64)
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


def optimizer_of(workload, parameters, **more):
    """PyTorch's own, in the fastest form that it offers; `more` goes to those that count their steps."""
    options = workload.optimizer
    rate = options["rate"]
    if options["name"] == "sgd":
        return torch.optim.SGD(parameters, lr=rate, fused=True)
    if options["name"] == "momentum":
        return torch.optim.SGD(parameters, lr=rate, momentum=options["momentum"], fused=True)
    if options["name"] == "adam":
        return torch.optim.Adam(parameters, lr=rate, fused=True, **more)
    return torch.optim.Adadelta(parameters, lr=rate, rho=0.95, eps=1e-6, foreach=True, **more)


def updates_in_place(workload, parameters, gradients, states):
    """The same formulas for a compiled step, which fuses them itself."""
    options = workload.optimizer
    rate = options["rate"]
    if options["name"] == "adam":
        step = states["step"]
        step.add_(1)
        rate = rate * torch.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    for name, p in parameters.items():
        g = gradients[name]
        if options["name"] == "sgd":
            p.sub_(g * rate)
        elif options["name"] == "momentum":
            v = states["v"][name]
            v.copy_(options["momentum"] * v - rate * g)
            p.add_(v)
        elif options["name"] == "adam":
            m, v = states["m"][name], states["v"][name]
            m.copy_(0.9 * m + 0.1 * g)
            v.copy_(0.999 * v + 0.001 * g * g)
            p.sub_(rate * m / (torch.sqrt(v) + 1e-8))
        else:
            m, v = states["m"][name], states["v"][name]
            m.copy_(0.95 * m + 0.05 * g * g)
            delta = torch.sqrt(v + 1e-6) / torch.sqrt(m + 1e-6) * g
            v.copy_(0.95 * v + 0.05 * delta * delta)
            p.sub_(rate * delta)


def states_of(parameters):
    device = next(iter(parameters.values())).device
    zeros = lambda: {name: torch.zeros_like(p) for name, p in parameters.items()}
    return {"m": zeros(), "v": zeros(), "step": torch.zeros((), device=device)}


def make(workload, form):
    torch.manual_seed(1)
    torch._dynamo.reset()
    images, labels = (torch.from_numpy(a) for a in workload.images())
    labels = labels.long()
    order = torch.from_numpy(workload.order())
    channels_last = form.endswith("channels_last")
    network = Network(workload, channels_last)
    if workload.evaluation:
        return evaluation(workload, form, network, images, labels)
    per_epoch = workload.count // workload.batch
    batches = itertools.cycle([order[k * workload.batch:(k + 1) * workload.batch] for k in range(per_epoch)])

    if form.startswith("compile step"):
        parameters = {name: p.detach() for name, p in network.named_parameters()}
        states = states_of(parameters)

        def loss_of(values, x, y):
            return F.cross_entropy(torch.func.functional_call(network, values, (x,)), y)

        def step(rows):
            x = normalised(workload, images.index_select(0, rows), channels_last)
            gradients, loss = torch.func.grad_and_value(loss_of)(parameters, x, labels.index_select(0, rows))
            updates_in_place(workload, parameters, gradients, states)
            return loss

        compiled = torch.compile(step, dynamic=False)

        def run(steps):
            with torch.no_grad():
                losses = [compiled(rows) for rows in itertools.islice(batches, steps)]
            return losses[-1]

        return run

    optimizer = optimizer_of(workload, network.parameters())
    normalise = normalised if form.startswith("compile") else normalised_in_place

    def loss_of(rows):
        x = normalise(workload, images.index_select(0, rows), channels_last)
        return F.cross_entropy(network(x), labels.index_select(0, rows))

    if form.startswith("compile"):
        loss_of = torch.compile(loss_of, dynamic=False)

    def run(steps):
        losses = []
        for rows in itertools.islice(batches, steps):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(rows)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses[-1]

    return run


def evaluation(workload, form, network, images, labels):
    """Forms end in "batch N": the size of the chunks that the test set is cut into."""
    network.eval()
    words = form.split()
    batch = int(words[words.index("batch") + 1])
    channels_last = "channels_last" in words
    normalise = normalised if words[0] == "compile" else normalised_in_place

    def chunk(x, y):
        logits = network(normalise(workload, x, channels_last))
        return F.cross_entropy(logits, y), (logits.argmax(1) != y).sum()

    if words[0] == "compile":
        chunk = torch.compile(chunk, dynamic=False)
    chunks = list(zip(images.split(batch), labels.split(batch)))

    def run(steps):
        with torch.inference_mode():
            for _ in range(steps):
                scores = [chunk(x, y) for x, y in chunks]
        return sum(loss for loss, _ in scores) / len(scores)

    return run


if __name__ == "__main__":
    common.serve(torch.__version__, make)
