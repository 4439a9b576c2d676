"""What verifiers finds under the id `kernelmill-taskset`: it looks for a module of that name."""

from kernelmill.adapters.verifiers import KernelEnv, KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset"]
