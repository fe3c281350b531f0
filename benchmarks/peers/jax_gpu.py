#!/usr/bin/env python3
"""JAX's training steps on a GPU: a jitted step called once a step, and lax.scan over many steps in one
call."""

import os
import sys

import gpu

FORMS = ["jit", "scan"]


def version():
    import jax
    return jax.__version__


def make(workload, form, options):
    # The process is of this device alone, and does not take all of its memory.
    os.environ["JAX_PLATFORMS"] = options.device
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    import jax_peer as peer

    if not options.tf32:
        jax.config.update("jax_default_matmul_precision", "highest")
    # A part of an epoch a call: enough to hide the call.
    run = peer.make(workload, form, min(100, workload.count // workload.batch))

    def waited_for(steps):
        return float(run(steps))

    waited_for.multiple = getattr(run, "multiple", 1)
    return waited_for


if __name__ == "__main__":
    sys.exit(gpu.main("jax_gpu", FORMS, version, make))
