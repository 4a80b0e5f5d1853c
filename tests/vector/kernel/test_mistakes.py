"""Mistakes of authors: each is told in one sentence that names their line, before anything is compiled or lost."""

import importlib.util
import itertools
import re
import sys
import warnings

import pytest

import shoal
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


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("s.x = np.i0(s.x)", r"np\.i0 cannot be used .* a loop or math's functions"),
        (
            "return 0.0, 1, False",
            "a number where a bool belongs; the order is reward, terminated, truncated, in `return",
        ),
    ],
)
def test_what_only_the_compiler_finds_is_told_in_a_sentence_too(step, words, tmp_path):
    toy = load(tmp_path, program(step=f"if s.t > 9999:\n    {step}"))
    with pytest.raises(KernelError, match=rf"Toy.step \(.*toy\.py:\d+\): .*{words}"):
        KernelBatch(toy, 2)


@pytest.mark.parametrize("arguments", ["self", "self, limit=3"])
def test_an_init_that_does_not_take_all_params_is_refused(arguments, tmp_path):
    with pytest.raises(ShoalError, match=r"Toy.__init__ \(.*toy\.py:\d+\).*`state`.*`params`"):
        shoal.make(load(tmp_path, program(more=f"def __init__({arguments}):\n    self.count = 0")), 2)


def test_parameters_that_are_no_dict_are_told_of_by_make(tmp_path):
    with pytest.raises(KernelError, match=r"Toy.params \(.*toy\.py:\d+\)"):
        shoal.make(load(tmp_path, program(declare="params = {'limit'}")), 2)


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
