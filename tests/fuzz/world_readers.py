"""What single worlds read: knowledge graphs, embedding models, cities and trips, oracles, stored policies, searches."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

from tests.fuzz.attempts import ROOT, Reader
from tests.fuzz.damage import damage_json, damage_json_lines, damage_tensors, damage_text
from tests.worlds.dvrp.lanes.test_csv_files import CELLS, COLUMNS, decision, trip

_WORLDS = ROOT / "src" / "shoal" / "worlds"
_SMALL = [
    "--num-envs",
    "4",
    "--algo.num-steps",
    "8",
    "--algo.minibatches",
    "2",
    "--eval-episodes",
    "2",
    "--runs-dir",
    "runs",
]
_SMALL_KG = [*_SMALL, "--max-states", "16", "--max-depth", "4", "--embedding-size", "8", "--algo.hidden", "8"]

_GRAPH = {
    "train.txt": "parent(ann,bob)\nparent(bob,cid)\nparent(cid,dee)\ngrand(ann,cid)\nsister(eve,bob)\n% a remark\n",
    "valid.txt": "grand(bob,dee)\n",
    "test.txt": "grand(ann,dee)\n",
    "rules.txt": "r0:0.9:parent(X,Y), parent(Y,Z) -> grand(X,Z)\nr1:1:grand(X,Y), sister(Z,X) -> grand(Z,Y)\n",
    "domain2constants.txt": "people ann bob cid dee eve\nparent:people:people\n",
    "train_depths.txt": "grand(ann,cid) 2\n",
    "soft.txt": "parent(dee,eve) 0.9 1\n",
}


def _graph(folder: Path) -> None:
    (folder / "data").mkdir()
    for name, text in _GRAPH.items():
        (folder / "data" / name).write_text(text)


GRAPH = Reader(
    "kg folder",
    _graph,
    {f"data/{name}": damage_text for name in _GRAPH},
    ["train", "kg", "--data", "data", "--soft-facts", "soft.txt", "--no-require-rule", *_SMALL_KG],
    ("data",),
    also_named=("'data'",),
)


# ---------------------------------------------------------------------- dvrp


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _city(folder: Path) -> None:
    seconds = [[0, 600, 700], [650, 0, 300], [720, 310, 0]]
    for name in ("times.csv", "metres.csv"):
        _write(folder / name, ["h3", *CELLS], [[cell, *row] for cell, row in zip(CELLS, seconds, strict=True)])
    rows = [trip(who, who % 4, ends=(who % 3, (who + 1) % 3)) for who in range(1, 7)]
    _write(folder / "trips.csv", COLUMNS, rows)
    answers = [decision(row, action, [True, False, True, False]) for row in rows for action in range(16)]
    kinds = [COLUMNS[1], *COLUMNS[3:8], "pickup_shift_min", "dropoff_shift_min", "flexibility"]
    from shoal.worlds.dvrp.lanes.csv_files import FLEXIBILITY

    _write(folder / "answers.csv", [*kinds, *FLEXIBILITY], answers)


_OF_CITY = ["--travel-times", "times.csv", "--distances", "metres.csv", "--trips", "trips.csv", "--customers", "2"]
CITY = Reader(
    "dvrp csv",
    _city,
    dict.fromkeys(("times.csv", "metres.csv", "trips.csv", "answers.csv"), damage_text),
    ["train", "dvrp", *_OF_CITY, "--acceptance", "csv", "--decisions", "answers.csv", *_SMALL],
    ("times.csv", "trips.csv"),
    also_named=("csv",),  # the files must agree, and any of them may be the one that is named
)


def _oracle(folder: Path) -> None:
    shutil.copy(_WORLDS / "dvrp" / "lanes" / "oracles" / "neural" / "neural.safetensors", folder / "oracle.safetensors")


ORACLE = Reader(
    "dvrp oracle",
    _oracle,
    {"oracle.safetensors": damage_tensors},
    ["train", "dvrp", "--oracle", "neural", "--oracle-checkpoint", "oracle.safetensors", "--customers", "4", *_SMALL],
)

# ---------------------------------------------------------------------- stored policies


def _policy(folder: Path) -> None:
    stored = sorted((_WORLDS / "hockey" / "lab" / "stored").glob("*.safetensors"))
    shutil.copy(min(stored, key=lambda path: path.stat().st_size), folder / "policy.safetensors")


POLICY = Reader(
    "stored policy",
    _policy,
    {"policy.safetensors": damage_tensors},
    ["tournament", "policy.safetensors", "weak", "--games", "2"],
)

# ---------------------------------------------------------------------- what is made once


def make_materials(folder: Path) -> list[Reader]:
    """An embedding model and a search, made in `folder`, and what reads them."""
    from shoal.cli import main
    from shoal.worlds.cage2.lab.search.search import WorkflowSearch

    _graph(folder)
    model = ["kg", "train-kge", str(folder / "kge"), "--data", str(folder / "data"), "--rank", "4", "--epochs", "1"]
    assert main(model) == 0
    small = {"strategy": "random", "num_envs": 2, "length": 10, "max_episodes": 2, "eval_episodes": 2}
    WorkflowSearch(folder=folder / "search", workflows=2, **small).run()

    def embedding(target: Path) -> None:
        _graph(target)
        shutil.copytree(folder / "kge", target / "kge")

    def search(target: Path) -> None:
        shutil.copytree(folder / "search", target / "search")

    return [
        Reader(
            "kg embedding",
            embedding,
            {"kge/kge.json": damage_json, "kge/kge.safetensors": damage_tensors},
            ["train", "kg", "--data", "data", "--kge", "kge", "--shaping", "0.5", "--no-require-rule", *_SMALL_KG],
            ("kge",),
        ),
        Reader(
            "cage2 search",
            search,
            {
                "search/config.json": damage_json,
                "search/picks.jsonl": damage_json_lines,
                "search/curves/0.json": damage_json,
                "search/networks/1.safetensors": damage_tensors,
            },
            ["cage2", "search", "--folder", "search", "--rank-all"],
            ("search/networks",),
        ),
    ]
