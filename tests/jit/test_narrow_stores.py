"""Bytes that some lanes of a vector set."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from shoal.jit.narrow_stores import without_narrow_stores

# the mask is needed behind a call, so that it is put aside on the stack meanwhile
TEXT = """
define void @marks(ptr %flags, ptr %numbers) {
  %before = load <8 x i8>, ptr %flags, align 1
  %free = icmp eq <8 x i8> %before, zeroinitializer
  %x = load <8 x double>, ptr %numbers, align 8
  %y = call <8 x double> @llvm.cos.v8f64(<8 x double> %x)
  call void @llvm.masked.store.v8f64.p0(<8 x double> %y, ptr ALIGN8 %numbers, MASK <8 x i1> %free)
  tail call void @llvm.masked.store.v8i8.p0(<8 x i8> splat (i8 1), ptr ALIGN1 %flags, MASK <8 x i1> %free), !noalias !0
  ret void
}
declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, KIND <8 x i1>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, KIND <8 x i1>)
declare <8 x double> @llvm.cos.v8f64(<8 x double>)
!0 = !{!1}
!1 = distinct !{!1, !2}
!2 = distinct !{!2}
"""


def module() -> llvm.ModuleRef:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    newer = {"ALIGN8": "align 8", "ALIGN1": "align 1", "MASK ": "", "KIND ": ""}
    older = {"ALIGN8 ": "", "ALIGN1 ": "", "MASK ": "i32 1, ", "KIND ": "i32, "}  # before LLVM 22
    text = TEXT
    for word, instead in (newer if llvm.llvm_version_info >= (22, 0, 0) else older).items():
        text = text.replace(word, instead)
    made = llvm.parse_assembly(text)
    made.triple = llvm.get_process_triple()
    return made


def test_no_other_byte_is_written():
    changed = without_narrow_stores(module())
    changed.verify()
    assert "call void @llvm.masked.store.v8i8" not in str(changed)
    assert "call void @llvm.masked.store.v8f64" in str(changed)
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=3, cpu=llvm.get_host_cpu_name(), features=features, jit=True)
    engine = llvm.create_mcjit_compiler(changed, machine)
    engine.finalize_object()
    marks = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("marks"))
    flags, numbers = np.array([0, 5, 0, 5, 0, 5, 0, 5] + [7] * 16, np.int8), np.zeros(8)
    marks(flags.ctypes.data, numbers.ctypes.data)
    assert flags.tolist() == [1, 5, 1, 5, 1, 5, 1, 5] + [7] * 16
    assert numbers.tolist() == [1.0, 0.0] * 4


def test_what_has_none_is_left_as_it_is():
    empty = llvm.parse_assembly("define void @nothing() {\n  ret void\n}")
    assert without_narrow_stores(empty) is empty
