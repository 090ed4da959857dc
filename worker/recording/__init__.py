"""From a .cu file to a cubin and the tapes of its cases. Needs the CUDA toolkit, and no GPU."""
