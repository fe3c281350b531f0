"""The training steps that a visit looks at: those of benchmarks/networks.json."""

WORKLOADS = {
    "a": "logistic, batch 600",
    "b20": "mlp, batch 20",
    "b128": "mlp, batch 128",
    "c8": "mnist_cnn small, batch 8",
    "c128": "mnist_cnn small, batch 128",
    "d": "mnist_cnn keras, batch 128",
    "e": "cifar10_cnn 16 filters, batch 100",
    "e64": "cifar10_cnn 64 filters, batch 100",
}
QUICK = ("a",)


def workloads(visit):
    return QUICK if visit.options.quick else tuple(WORKLOADS)
