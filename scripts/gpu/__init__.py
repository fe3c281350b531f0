"""The parts of scripts/gpu_check. Standard library only: it has to run on whatever machine has the GPU."""
