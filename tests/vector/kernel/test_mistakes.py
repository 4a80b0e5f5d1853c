"""Mistakes of authors: each is told in one sentence that names their line, before anything is compiled or lost."""

import importlib.util
import itertools
import re
import sys
import warnings

import pytest

from shoal.errors import KernelError, ShoalError
from shoal.vector.kernel import Kernel, KernelBatch
from shoal.vector.kernel.dry_run import dry_run
from tests.vector.kernel.mistakes import BEFORE_COMPILING, NOTES, program

_numbers = itertools.count()


def load(folder, text):
    """The kernel `Toy` of a module with this text."""
    name = f"toy_{next(_numbers)}"
    path = folder / "toy.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Toy


def notes_about(toy):
    """What a trial of the kernel has to say."""
    batch = KernelBatch(toy, 2, compiled=False)
    return dry_run(batch.kernel, batch.lane_state)


@pytest.mark.parametrize(("parts", "words"), BEFORE_COMPILING.values(), ids=BEFORE_COMPILING)
def test_a_mistake_is_one_sentence(parts, words, tmp_path):
    with pytest.raises(ShoalError) as caught:
        notes_about(load(tmp_path, program(**parts)))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert re.search(r"toy\.py:\d+", sentence)
    for word in words:
        assert word in sentence


def test_a_function_that_numba_does_not_know_is_told_with_what_to_write(tmp_path):
    toy = load(tmp_path, program(step="if s.t > 9999:\n    s.x = np.i0(s.x)"))
    with pytest.raises(
        KernelError, match=r"Toy.step \(.*toy\.py:\d+\): np\.i0 cannot be used .* a loop or math's functions"
    ):
        KernelBatch(toy, 2)


@pytest.mark.parametrize(("parts", "words"), NOTES.values(), ids=NOTES)
def test_what_looks_like_a_mistake_is_noted(parts, words, tmp_path):
    (note,) = notes_about(load(tmp_path, program(**parts)))
    for word in words:
        assert word in note


def test_a_kernel_without_mistakes_has_no_notes(tmp_path):
    toy = load(tmp_path, program())
    assert issubclass(toy, Kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert notes_about(toy) == []
