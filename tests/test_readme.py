"""The README's Python blocks run as they stand, in order, in one folder."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        name = re.match(r"# (\w+\.py)\n", block)
        path = tmp_path / (name.group(1) if name else f"block_{number}.py")
        path.write_text(block)  # a kernel's source must be in a file
        exec(compile(block, str(path), "exec"), {"__name__": "__main__"})
