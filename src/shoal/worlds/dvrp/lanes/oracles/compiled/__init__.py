"""Compiled routing: plans, insertion, ruin and recreate, and how all of it is compiled."""

from __future__ import annotations

from shoal.jit import entry, inner

jit = inner(error_model="numpy")
jit_cached = entry("dvrp_routing", error_model="numpy")
"""For the functions that are called from outside."""
