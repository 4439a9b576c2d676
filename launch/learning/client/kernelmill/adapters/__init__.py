"""Kernelmill's episodes in the places that trainers keep for environments. Each module needs its trainer's package."""
