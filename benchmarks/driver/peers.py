"""Which peers there are, in which processes they run, and which forms of a workload each of them tries."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Form:
    peer: str  # as in the table
    process: str
    form: str  # what the process is asked for

    def title(self):
        settings = {"torch-tuned": ", tuned", "torch-default": ", default settings"}
        return self.form + settings.get(self.process, "")


PEERS = ["torch eager", "torch compile", "jax jit", "jax scan", "pytensor numba", "pytensor c", "onednn"]


# XLA runs convolutions on the CPU slowly, inside of a scan many times slower than outside.
SLOW = {"d": ["jax scan"], "d-dropout": ["jax scan"], "f-d": ["jax jit", "jax scan"]}


def processes(threads):
    """name: (program, environment); of Python, or built beside ours"""
    count = str(threads)
    counts = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count,
              "NUMBA_NUM_THREADS": count, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    # What a careful user sets: threads bound to cores, and a malloc that keeps its memory.
    keep = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
    tuned = counts | keep | {"OMP_PROC_BIND": "true"}
    return {"torch-default": ("torch_peer.py", counts),
            "torch-tuned": ("torch_peer.py", tuned),
            "torch-kernels": ("torch_kernels.py", tuned),
            "torch-shapes": ("torch_shapes.py", tuned),
            "onednn": ("bench_onednn", tuned),
            "jax": ("jax_peer.py", counts | keep),
            "pytensor": ("pytensor_peer.py", counts)}


def kernel_forms(entry):
    """PyTorch with tuned settings, and oneDNN."""
    op = entry["op"]
    layouts = ["", " channels_last"] if op in ("conv", "pool") else [""]
    result = [Form("torch " + kind, "torch-kernels", kind + layout) for kind in ("eager", "compile")
              for layout in layouts]
    plain = {"gemm": ["sgemm", "matmul"], "conv": ["nchw", "nhwc", "any"], "pool": ["nchw", "nhwc", "any"]}
    return result + [Form("onednn", "onednn", form) for form in plain.get(op, ["plain"])]


# Of the rows (h): styles of PyTorch beside the plain one, see torch_shapes.py.
STYLES = {"conv": ["channels_last"], "pool": ["channels_last"], "conv_pool": ["channels_last"],
          "covariance": ["chunks"], "k_means": ["chunks", "kept"], "logistic": ["chunks", "kept"],
          "dequantized": ["chunks", "packed"], "distances": ["differences"], "integer_product": ["int_mm"]}
EAGER_ONLY = ("chunks", "packed")


def shape_forms(entry):
    """PyTorch with tuned settings."""
    op = entry["op"]
    if entry.get("pass") == "step" or op in ("prod_gradient", "topk_gradient"):
        sparse = op == "lookup"
        styles = {"eager": ["", "sparse"] if sparse else [""],
                  "compile": ["step"] if sparse else ["step", "model"]}
    else:
        more = STYLES.get(op, [])
        styles = {"eager": ["", *more], "compile": ["", *(s for s in more if s not in EAGER_ONLY)]}
    return [Form("torch " + kind, "torch-shapes", f"{kind} {style}".strip())
            for kind, of_kind in styles.items() for style in of_kind]


def forms(description, name):
    workload = description["workloads"][name]
    evaluation = "evaluates" in workload
    layers = description["workloads"][workload.get("evaluates", name)]["layers"]
    convolutional = any(layer[0] == "conv" for layer in layers)
    layouts = ["", " channels_last"] if convolutional else [""]
    sizes = [f" batch {size}" for size in workload["chunks"]] if evaluation else [""]
    result = []
    for process in ("torch-tuned", "torch-default"):
        result += [Form("torch eager", process, "eager" + layout + size)
                   for layout in layouts for size in sizes]
        kinds = ["compile"] if evaluation else ["compile step", "compile model"]
        result += [Form("torch compile", process, kind + layout + size)
                   for kind in kinds for layout in layouts for size in sizes]
    for kind in ("jit", "scan"):
        result += [Form("jax " + kind, "jax", kind + layout + size)
                   for layout in (["", " nhwc"] if convolutional else [""]) for size in sizes]
    result += [Form("pytensor " + kind, "pytensor", kind) for kind in ("numba", "c")]
    return result
