"""The neural oracle: weights, the city they were trained for, and decoding of whole batches."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from shoal.agents.checks import check_device
from shoal.errors import ConfigError
from shoal.options import build
from shoal.reading import parse_json, shortened
from shoal.vector.oracle import Oracle
from shoal.worlds.dvrp.lanes.city import City
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
from shoal.worlds.dvrp.lanes.oracles.neural import decoding, fast
from shoal.worlds.dvrp.lanes.oracles.neural.model import Architecture, AttentionModel, Memory
from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import Problem, make_problem
from shoal.worlds.dvrp.lanes.settings import Decoding
from shoal.worlds.dvrp.lanes.solution import Solution

SHIPPED = "neural.safetensors"


class NeuralOracle(RoutingOracle):
    """Builds all routes of all rows together: one pass of the encoder, at most 3n steps of the decoder.

    Decodings: `greedy`; `sample` (one draw from the policy); `multistart` (greedy from `samples` different first
    pickups, the best of them); `best_of_k` (greedy and `samples` - 1 draws, the best of them). Draws are made at a
    `temperature` below 1, closer to the likeliest plan. Random numbers do not depend on the row, so a batch and its
    rows one by one give the same routes.
    """

    name = "neural"
    temperature = 0.7  # best on request sets of other seeds

    def __init__(
        self,
        city: City,
        fleet: Fleet,
        checkpoint: str | Path | AttentionModel | None = None,
        decoding: Decoding = "greedy",
        samples: int = 16,
        seed: int = 0,
        chunk: int | None = None,
        device: str = "cpu",
    ) -> None:
        """`checkpoint` is a file or the model itself; None takes the weights that come with Shoal."""
        if decoding not in get_args(Decoding):
            raise ConfigError(f"decoding={decoding!r} is unknown. Use one of {', '.join(get_args(Decoding))}.")
        if samples < 1:
            raise ConfigError(f"samples must be at least 1, not {samples}.")
        super().__init__(city, fleet)
        self.decoding, self.samples, self.seed = decoding, samples, seed
        self.device = check_device(device, "oracle_device")
        model = checkpoint if isinstance(checkpoint, AttentionModel) else load_model(checkpoint, city)
        self.model = model.to(self.device).eval()
        self._seconds = torch.as_tensor(city.duration, dtype=torch.float32, device=self.device)
        price = fleet.price(city) / fleet.unit
        self._price = torch.as_tensor(price, dtype=torch.float32, device=self.device)
        self._xy = torch.as_tensor(city.coordinates() / 10, dtype=torch.float32, device=self.device)
        self._fast = self.device.type == "cpu"
        self._rows = Oracle(self._solve_rows, name=self.name, chunk=chunk)

    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """Plans for what is booked. The model plans anew each time, so `plan` only says how long routes may be."""
        size = int(np.flatnonzero(booked.any(0)).max(initial=-1)) + 1
        nodes = 2 * size + 1
        routes = np.zeros_like(plan)
        planned = self._rows(cells[:, :nodes], tw[:, :nodes], np.ascontiguousarray(booked[:, :size]))
        routes[:, : planned.shape[1]] = planned
        return Solution(*price_routes(self.city, self.fleet, cells, routes), routes)

    # ------------------------------------------------------------------ decoding

    @torch.inference_mode()
    def _solve_rows(self, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray) -> np.ndarray:
        problem = self.pose(cells, tw, booked)
        xy = self._xy[torch.as_tensor(cells.astype(np.int64))]
        memory = fast.encode(self.model, problem, xy) if self._fast else self.model.encode(problem, xy)
        build = fast.rollout if self._fast else decoding.rollout
        if self.decoding == "greedy":
            return build(self.model, memory, problem).sequence.cpu().numpy().astype(np.int16)
        tries = 1 if self.decoding == "sample" else self.samples
        first = _starts(problem, tries) if self.decoding == "multistart" else None
        noise = None if first is not None else self._noise(tries)
        many, memories = decoding.repeat(problem, memory, tries)
        plans = build(self.model, memories, many, noise, first)
        cost = self.price(plans).reshape(len(cells), tries)
        best = plans.sequence.reshape(len(cells), tries, -1)[torch.arange(len(cells)), cost.argmin(1)]
        return best.cpu().numpy().astype(np.int16)

    def read(self, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray | None = None) -> tuple[Problem, Memory]:
        """Pose and encode request sets: cells [B, N], tw [B, N, 2], booked [B, n] or None for all."""
        problem = self.pose(cells, tw, booked)
        return problem, self.model.encode(problem, self._xy[torch.as_tensor(cells.astype(np.int64))])

    def pose(self, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray | None = None) -> Problem:
        """Request sets as construction takes them."""
        place = torch.as_tensor(cells.astype(np.int64), device=self.device)
        windows = torch.as_tensor(tw.astype(np.float32), device=self.device)
        wanted = torch.ones_like(place, dtype=torch.bool)
        if booked is not None:
            wanted[:, 1:] = torch.as_tensor(np.repeat(booked, 2, axis=1), device=self.device)
        return make_problem(place, windows, wanted, self._seconds, self._price, self.fleet)

    def price(self, plans: decoding.Routes) -> Tensor:
        """[B] driving, and the vehicles beyond the fleet."""
        return plans.length + self.fleet.vehicle_penalty * (plans.vehicles - self.fleet.size).clamp(min=0)

    def _noise(self, tries: int) -> decoding.Noise:
        """The same draws for every request set; the first of several tries goes without, which makes it greedy."""

        def draw(step: int, rows: Tensor, codes: int) -> Tensor:
            rng = np.random.Generator(np.random.Philox(key=[self.seed, step]))
            uniform = rng.random((codes, tries))  # codes first: more nodes leave the others alone
            gumbel = -self.temperature * np.log(-np.log(uniform))
            if tries > 1:
                gumbel[:, 0] = 0.0
            return torch.as_tensor(gumbel.T.astype(np.float32), device=rows.device)[rows % tries]

        return draw


def _starts(problem: Problem, tries: int) -> Tensor:
    """[B * tries] first pickups: the earliest ones, each once, then again from the beginning."""
    opens = torch.where(problem.wanted, problem.opens, torch.inf)[:, 1::2]
    order = opens.sort(dim=1, stable=True).indices
    count = problem.wanted[:, 1::2].sum(1, keepdim=True).clamp(min=1)
    turn = torch.arange(tries, device=opens.device) % count
    return (2 * order.gather(1, turn) + 1).flatten()


def price_routes(city: City, fleet: Fleet, cells: np.ndarray, routes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact cost [B] and vehicles [B] of flat routes [B, T] over cells [B, N]."""
    stops = np.pad(routes.astype(np.int64), ((0, 0), (1, 1)))
    place = np.where(stops > 0, np.take_along_axis(cells, stops, 1), city.depot)
    vehicles = ((stops[:, :-1] == 0) & (stops[:, 1:] > 0)).sum(1)
    driven = fleet.price(city)[place[:, :-1], place[:, 1:]].sum(1, dtype=np.int64)
    return (driven + fleet.penalty * np.maximum(vehicles - fleet.size, 0)) / fleet.unit, vehicles


# ---------------------------------------------------------------------- checkpoints


def save_model(path: str | Path, model: AttentionModel, city: City, sizes: tuple[int, int], command: str) -> None:
    """Write weights in half precision, with the architecture, the city, the range of sizes and how they were made."""
    from safetensors.torch import save_file

    about = {"architecture": json.dumps(asdict(model.architecture)), "city": city.identity}
    about |= {"sizes": json.dumps(sizes), "command": command}
    save_file({name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}, path, about)


def load_model(path: str | Path | None, city: City) -> AttentionModel:
    """The model in a checkpoint (the one that comes with Shoal if None); refused if it was trained in another city."""
    if path is None:
        with as_file(files(__package__) / SHIPPED) as shipped:
            return _load(shipped, city)
    return _load(Path(path), city)


def _load(path: Path, city: City) -> AttentionModel:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            about: dict[str, str] = file.metadata() or {}
            weights = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path} is not an oracle checkpoint: {error}.") from None
    if "architecture" not in about:
        raise ConfigError(f"{path} holds tensors but not an oracle: its architecture is missing.")
    if about.get("city") != city.identity:
        raise ConfigError(
            f"The oracle in {path.name} was trained in city {shortened(about.get('city'))}, "
            f"and this is city {city.identity!r}. "
            "Train one here with `shoal dvrp train-oracle`, or use the oracle 'ruin', which knows every city."
        )
    try:
        model = AttentionModel(
            build(Architecture, parse_json(about["architecture"]), f"in {path}", "The documentation")
        )
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip().removesuffix(".")
        raise ConfigError(f"{path} is not an oracle checkpoint: its architecture does not fit: {reason}.") from error
    return model
