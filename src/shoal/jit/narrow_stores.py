"""Stores of some of eight neighbouring bytes, without the instruction for them.

Where a loop of vectors sets a field of one byte in some lanes, LLVM 22 makes a masked store of sixteen bytes for
AVX-512, eight of which are masked out; but if the mask was put aside on the stack before, those eight bits of it are
whatever they were, and the next eight lanes are spoiled. So the old bytes are read, chosen from, and all written: they
are lanes of the same block, which no other thread has.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

_NAME = re.compile(r"llvm\.masked\.store\.v(?:2|4|8)i8\.")
_STORE = re.compile(
    r"^ *(?:tail |notail |musttail )?call void @llvm\.masked\.store\.v[248]i8\.p0"
    r"\((?P<kind><\d x i8>) (?P<new>.+), ptr (?:align \d+ )?(?P<place>[%@]\S+?), (?:i32 \d+, )?(?P<mask><\d x i1> .+)\)"
    r"(?P<rest>.*)$",
    re.MULTILINE,
)


def without_narrow_stores(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """The module, or one that does the same without masked stores of less than sixteen bytes."""
    if not any(_NAME.match(function.name) for function in module.functions):
        return module
    changed = llvm.parse_assembly(_STORE.sub(_chosen, str(module)))
    changed.name = module.name
    return changed


def _chosen(store: re.Match[str]) -> str:
    kind, place = store["kind"], store["place"]
    old, new = f"%shoal.old.{store.start()}", f"%shoal.new.{store.start()}"
    return (
        f"  {old} = load {kind}, ptr {place}, align 1\n"
        f"  {new} = select {store['mask']}, {kind} {store['new']}, {kind} {old}\n"
        f"  store {kind} {new}, ptr {place}, align 1"
    )
