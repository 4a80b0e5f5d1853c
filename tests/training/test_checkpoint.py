"""Checkpoints: what goes in comes out exactly, and no failure costs an earlier one."""

import json
import os
import signal
import subprocess
import sys

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import RunError
from shoal.platform import resource
from shoal.training.checkpoint import ARRAYS, META, Checkpoints

PLAIN = st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="<"), hnp.floating_dtypes(endianness="<"))


@settings(max_examples=25, deadline=None)
@given(
    array=hnp.arrays(PLAIN, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    step=st.integers(0, 2**40),
)
def test_any_plain_array_comes_back_bit_for_bit(tmp_path_factory, array, step):
    store = Checkpoints(tmp_path_factory.mktemp("run") / "checkpoints")
    store.save(step, {"a": array}, {"note": "x"})
    back = store.load()
    assert back.step == step
    assert back.meta == {"note": "x"}
    assert back.arrays["a"].dtype == array.dtype
    assert back.arrays["a"].shape == array.shape
    assert back.arrays["a"].tobytes() == array.tobytes()


def test_records_padding_text_and_tensors_come_back(tmp_path):
    record = np.dtype([("flag", "i1"), ("pos", "<f4", (2, 3)), ("sub", [("n", "<i8")])], align=True)
    arrays = {
        "lanes": np.frombuffer(os.urandom(record.itemsize * 5), record),
        "text": np.array(["a", "bcd"]),
        "weight": torch.arange(6.0).reshape(2, 3).t().requires_grad_(),
        "count": torch.tensor(7),
    }
    store = Checkpoints(tmp_path)
    store.save(1, arrays, {})
    back = store.load().arrays
    assert back["lanes"].dtype == record
    assert back["lanes"].tobytes() == arrays["lanes"].tobytes()
    assert back["text"].tolist() == ["a", "bcd"]
    assert np.array_equal(back["weight"], arrays["weight"].detach().numpy())
    assert back["count"].shape == ()


def test_python_objects_are_refused(tmp_path):
    with pytest.raises(RunError, match="'agent' holds Python objects"):
        Checkpoints(tmp_path).save(1, {"agent": np.array([object()])}, {})
    assert Checkpoints(tmp_path).steps() == []


def test_keeps_the_newest_and_the_best(tmp_path):
    store = Checkpoints(tmp_path, keep=2)
    for step in (10, 20, 30, 40, 50):
        store.save(step, {"a": np.array(step)}, {}, best=step == 20)
    assert store.steps() == [20, 40, 50]
    assert store.load("best").arrays["a"] == 20
    assert store.folder_of("latest").resolve().name == "step_50"
    assert store.load(40).step == 40
    with pytest.raises(RunError, match=r"no checkpoint 'step_30'. It has step_20, step_40, step_50"):
        store.load(30)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "no meta", "not json"])
def test_a_damaged_or_foreign_checkpoint_is_one_sentence(tmp_path, damage):
    store = Checkpoints(tmp_path / "checkpoints")
    store.save(1, {"a": np.arange(100)}, {})
    path = store.save(2, {"a": np.arange(100)}, {})
    content = (path / ARRAYS).read_bytes()
    if damage == "truncated":
        (path / ARRAYS).write_bytes(content[:-8])
    elif damage == "flipped":
        (path / ARRAYS).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "foreign":
        (path / META).write_text(json.dumps({"model": "other"}))
    elif damage == "no meta":
        (path / META).unlink()
    else:
        (path / META).write_text("{")
    with pytest.raises(RunError) as error:
        store.load()
    assert "step_2" in str(error.value)
    assert "Delete that folder to go on from step_1." in str(error.value)
    assert store.load(1).step == 1


@pytest.mark.skipif(resource is None, reason="this system cannot limit the size of files")
def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path):
    """RLIMIT_FSIZE makes the kernel refuse the write in the middle, as a full disk does."""
    store = Checkpoints(tmp_path)
    store.save(1, {"a": np.arange(10)}, {})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError, match=r"step 2 could not be written .* the last good checkpoint is step_1"):
            store.save(2, {"a": np.zeros(100_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert store.load().step == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "step_1"]


def test_a_really_full_disk(tmp_path):
    """A file system of 256 KiB, in a mount namespace of its own. Needs the right to mount."""
    script = """
import numpy as np, sys
from shoal.errors import RunError
from shoal.training.checkpoint import Checkpoints
store = Checkpoints(__import__("pathlib").Path(sys.argv[1]))
store.save(1, {"a": np.arange(10)}, {})
try:
    store.save(2, {"a": np.random.bytes(10) and np.random.rand(100_000)}, {})
except RunError as error:
    print(error)
print(store.load().step, store.steps())
"""
    mount = f"mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} - {tmp_path}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", mount], input=script, capture_output=True, text=True)
    if "permitted" in done.stderr or "denied" in done.stderr:
        pytest.skip("mounting a small file system is not permitted here")
    assert "the disk is full" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "1 [1]"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="a file stands where a folder is needed"):
        Checkpoints(tmp_path / "file" / "checkpoints").save(1, {"a": np.zeros(1)}, {})


def test_an_interrupted_save_is_invisible(tmp_path):
    """What a SIGKILL leaves behind, a temporary folder, is neither loaded nor in the way."""
    store = Checkpoints(tmp_path)
    store.save(1, {"a": np.zeros(1)}, {})
    (tmp_path / ".step_2.tmp").mkdir()
    (tmp_path / ".step_2.tmp" / ARRAYS).write_bytes(b"half")
    assert store.load().step == 1
    store.save(2, {"a": np.ones(1)}, {})
    assert store.load().step == 2
