"""Kernels: environments written for one lane in plain Python, compiled into one loop over all lanes."""

from shoal.vector.kernel.batch import KernelBatch
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.record import b1, f32, f64, i8, i16, i32, i64, record, u8, u16, u32, u64
from shoal.vector.kernel.scratch import scratch

__all__ = [
    "Kernel", "KernelBatch", "b1", "f32", "f64", "i8", "i16", "i32", "i64", "record", "scratch",
    "u8", "u16", "u32", "u64",
]  # fmt: skip
