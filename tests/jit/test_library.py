"""What Numba loads and compiles for us."""

import subprocess
import sys

PROGRAM = """
import sys
import numba, numpy as np
from shoal.jit import entry

@entry("twice")
def twice(x):
    return 2 * x.sum()

assert twice(np.ones(3)) == 6.0
print("scipy.linalg" in sys.modules)
product = numba.njit(lambda a, b: np.dot(a, b))
print(product(np.full((2, 2), 2.0), np.eye(2))[0, 0], "scipy.linalg" in sys.modules)
"""


def test_scipy_is_loaded_for_a_matrix_product_and_not_before(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["False", "2.0 True"]
