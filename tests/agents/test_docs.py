"""The Python block of docs/networks.md runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"


def test_the_network_of_the_page_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(block, str(PAGE), "exec"), {"__name__": "page"})
    assert float(capsys.readouterr().out.split()[-1]) > 0
