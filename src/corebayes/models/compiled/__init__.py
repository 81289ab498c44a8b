"""What numba compiles: kernels of the families, and log densities that samplers call from C."""
