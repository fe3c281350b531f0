#!/usr/bin/env python3
"""PyTorch's training steps on a GPU: eager, compiled, and each of them as one CUDA graph of the whole step.

The data set is on the device as bytes, and so is the number of the minibatch, so that a graph needs nothing
of the host between two launches.
"""

import sys

import gpu

FORMS = ["eager", "graph", "compile", "compile graph"]


def version():
    import torch
    return torch.__version__


def step_of(workload, form, options):
    """One training step without arguments; returns the loss, on the device."""
    import torch
    import torch.nn.functional as F

    import torch_peer as peer

    device = torch.device(options.device)
    images, labels = (torch.from_numpy(a).to(device) for a in workload.images())
    labels = labels.long()
    per_epoch = workload.count // workload.batch
    order = torch.from_numpy(workload.order())[:per_epoch * workload.batch]
    order = order.view(per_epoch, workload.batch).to(device)
    number = torch.zeros(1, dtype=torch.long, device=device)
    # Strict float32 engines read the plain order, tensor cores the one with channels last.
    network = peer.Network(workload, options.tf32).to(device)

    def batch(normalise):
        rows = order.index_select(0, number).flatten()
        number.add_(1).remainder_(per_epoch)
        return normalise(workload, images.index_select(0, rows), options.tf32), labels.index_select(0, rows)

    if form.startswith("compile"):
        parameters = {name: p.detach() for name, p in network.named_parameters()}
        states = peer.states_of(parameters)

        def loss_of(values, x, y):
            return F.cross_entropy(torch.func.functional_call(network, values, (x,)), y)

        def step():
            x, y = batch(peer.normalised)
            gradients, loss = torch.func.grad_and_value(loss_of)(parameters, x, y)
            peer.updates_in_place(workload, parameters, gradients, states)
            return loss

        compiled = torch.compile(step, dynamic=False)

        def without_gradients():
            with torch.no_grad():
                return compiled()

        return without_gradients

    # A graph cannot ask the host how often it ran.
    more = {"capturable": True} if form == "graph" else {}
    optimizer = peer.optimizer_of(workload, network.parameters(), **more)

    def eager():
        x, y = batch(peer.normalised_in_place)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return eager


def make(workload, form, options):
    import torch

    import common

    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    torch.backends.cudnn.benchmark = True
    if form.endswith("graph") and options.device == "cpu":
        raise common.NotSupported("a CPU has no CUDA graphs")
    step = step_of(workload, form, options)
    if not form.endswith("graph"):

        def run(steps):
            for _ in range(steps):
                loss = step()
            return float(loss)

        return run

    # Some steps on a stream of their own, as capturing wants them, then one that is recorded.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay(steps):
        for _ in range(steps):
            graph.replay()
        return float(loss)

    return replay


if __name__ == "__main__":
    sys.exit(gpu.main("torch_gpu", FORMS, version, make))
