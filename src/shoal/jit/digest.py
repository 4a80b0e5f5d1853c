"""What decides the meaning of compiled code, as one number.

Compiled code freezes more than its own source: the functions that it calls, in whichever file, and the value of every
global, closure variable and attribute of a module that any of them names. `digest_of` follows all of these, as Numba
does, and digests what Numba reads: bytecode (not text: a changed comment is not a change) and values.

What Python code makes compiled code of (intrinsics, overloads, models of types) cannot be followed so far, as it is
found by type and not by name. Wherever such an extension is named, the whole text of its file counts, with the values
of the constants that the file has from elsewhere.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic

from shoal.jit.vector_maths import c_library

_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(...))  # and what else is known by its text
# what these mean is decided by their version, which is part of every digest
_FOREIGN = {"builtins", "math", "cmath", "operator", "typing", "collections", "enum", "hashlib", "re", "struct"}
_FOREIGN |= {"numpy", "numba", "llvmlite"}


def digest_of(*values: object) -> str:
    """Hex digest of `values` (functions, compiled or plain, texts, arrays, ...) and of everything that they reach."""
    reach = _Reach()
    for value in (_machine(), *values):
        reach.note(value)
    return reach.hash.hexdigest()[:24]


@functools.cache
def _machine() -> tuple[str, ...]:
    """Versions, the processor, the C library, and the settings of Numba that change what it makes."""
    versions = (numba.__version__, llvmlite.__version__, np.__version__, str(sys.version_info[:3]))
    names = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "CPU_NAME")
    options = [str(getattr(numba.config, name)) for name in names]
    features = llvm.get_host_cpu_features().flatten()
    return (*versions, *options, llvm.get_host_cpu_name(), features, c_library())


class _Reach:
    """A digest that grows by everything that is noted; each function and module once."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._seen: dict[tuple, object] = {}  # things are kept, so that no other gets the same id

    def note(self, value: object, names: Iterable[str] = ()) -> None:
        """Digest one value. Of a module, only the attributes among `names` are looked at."""
        if type(value) in _NUMBERS:  # first, as this is most of what there is
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, Dispatcher):
            if self._is_new(value):
                self._write("compiled", repr(sorted((k, _ordered(v)) for k, v in value.targetoptions.items())))
                self._note_function(value.py_func)
        elif isinstance(value, types.FunctionType):
            self._note_extension(value)
        elif isinstance(value, _Intrinsic):
            self._note_extension(value._defn)
        elif isinstance(value, types.ModuleType):
            self._note_attributes(value, names)
        elif isinstance(value, type):
            self._note_class(value)
        elif isinstance(value, types.CodeType):
            self._note_code(value)
        else:
            self._note_value(value)

    # ------------------------------------------------------------------ what refers to other things

    def _note_function(self, function: types.FunctionType) -> None:
        # the module's name too: Numba's cache imports it again, and after a move or renaming it is not there
        self._write("function", function.__module__ or "", function.__qualname__)
        code = function.__code__
        self._note_code(code)
        self._note_value((function.__defaults__, function.__kwdefaults__))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._write("closure", name)
            try:
                self.note(cell.cell_contents, _names(code))
            except ValueError:  # a variable that is assigned later, or never
                self._write("empty")
        names = _names(code)
        for name in sorted(names & function.__globals__.keys()):
            self._write("global", name)
            self.note(function.__globals__[name], names)

    def _note_extension(self, function: types.FunctionType) -> None:
        """A plain function that compiled code names: Numba has been told elsewhere in its file what to make of it."""
        if _is_foreign(function.__module__):
            self._write("foreign", function.__module__, function.__qualname__)
        elif self._is_new(function):
            self._note_file(function)
            self._note_function(function)

    def _note_class(self, kind: type) -> None:
        self._write("class", kind.__module__, kind.__qualname__)
        if issubclass(kind, enum.Enum):
            self._note_value({name: member.value for name, member in kind.__members__.items()})
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            self._note_value((kind._fields, kind._field_defaults))  # type: ignore[attr-defined]
        elif not _is_foreign(kind.__module__) and self._is_new(kind):
            self._note_file(kind)
            for name, member in sorted(vars(kind).items()):
                if isinstance(member, types.FunctionType):
                    self._write("method", name)
                    self._note_function(member)
                elif not name.startswith("__") and _is_plain(member):
                    self._write("member", name)
                    self.note(member)

    def _note_file(self, owner: type | types.FunctionType) -> None:
        """The text of the file of a function or class, its constants, and the compiled functions that it names."""
        module = sys.modules.get(owner.__module__)
        if module is None or not self._is_new(module):
            return
        with contextlib.suppress(OSError, TypeError):  # a console has no file
            self._write("file", inspect.getsource(module))
        for name, value in sorted(vars(module).items()):
            if not name.startswith("__") and (_is_plain(value) or isinstance(value, Dispatcher)):
                self._write("constant", name)
                self.note(value)

    def _note_attributes(self, module: types.ModuleType, names: Iterable[str]) -> None:
        self._write("module", module.__name__)
        if _is_foreign(module.__name__):
            return
        attributes = sorted(set(names) & vars(module).keys())
        if self._is_new(module, *attributes):
            for name in attributes:
                self._write("attribute", name)
                self.note(getattr(module, name), names)

    def _note_code(self, code: types.CodeType) -> None:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self._write(code.co_code, repr((counts, names)), code.co_exceptiontable)
        for constant in code.co_consts:
            self.note(constant)

    # ------------------------------------------------------------------ plain values

    def _note_value(self, value: object) -> None:
        if isinstance(value, _NUMBERS):
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, enum.Enum):
            self._write("member", type(value).__qualname__, value.name)
            self._note_value(value.value)
        elif isinstance(value, np.ndarray | np.generic):
            flags = (value.flags.c_contiguous, value.flags.f_contiguous, value.flags.aligned)
            self._write("array", repr(value.dtype), repr((value.shape, flags)), value.tobytes())
        elif isinstance(value, tuple | list):
            self._write(type(value).__qualname__, str(len(value)))
            for part in value:
                self.note(part)
        elif isinstance(value, set | frozenset):
            self._note_value(_ordered(value))
        elif isinstance(value, dict):
            self._write("dict", str(len(value)))
            for key, part in value.items():
                self.note(key)
                self.note(part)
        elif isinstance(value, functools.partial):
            self._note_value(("partial", value.func, value.args, value.keywords))
        elif _is_foreign(type(value).__module__) and " at 0x" not in str(value):
            # a type of Numba's, a dtype, a ufunc, a built-in function, a type or constant of LLVM's
            self._write(type(value).__qualname__, str(value))
        else:
            raise TypeError(f"Compiled code names a {type(value).__qualname__}, which has no digest: {value!r}.")

    def _is_new(self, thing: object, *parts: str) -> bool:
        """Whether `thing` (or these parts of it) has not been noted before."""
        new = (id(thing), *parts) not in self._seen
        self._seen[(id(thing), *parts)] = thing
        return new

    def _write(self, *parts: str | bytes) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else part.encode()
            self.hash.update(len(data).to_bytes(8, "little"))  # or ("ab", "c") would be ("a", "bc")
            self.hash.update(data)


def _names(code: types.CodeType) -> set[str]:
    """All global and attribute names in a function's code and in that of the functions inside it."""
    inner = (_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def _ordered(value: object) -> object:
    """Sets as lists whose order does not depend on the process."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else value


def _is_plain(value: object) -> bool:
    parts = value if isinstance(value, tuple) else ()
    return isinstance(value, (*_NUMBERS, np.ndarray, np.generic, enum.Enum, tuple)) and all(map(_is_plain, parts))


def _is_foreign(module: str | None) -> bool:
    return (module or "builtins").partition(".")[0] in _FOREIGN
