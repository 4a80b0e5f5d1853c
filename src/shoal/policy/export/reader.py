"""Reads a stored policy with NumPy alone: `Policy("policy.safetensors").act(obs)`, obs [N, D] as one flat row each."""

import json

import numpy as np


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


class Policy:
    def __init__(self, path):
        data = np.fromfile(path, np.uint8).tobytes()
        size = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
        self.settings = json.loads(header.pop("__metadata__")["policy"])
        kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
        self.arrays = {}
        for name, at in header.items():
            begin, end = at["data_offsets"]
            self.arrays[name] = np.frombuffer(body[begin:end], kinds[at["dtype"]]).reshape(at["shape"])
        self.state = None  # of its memory, if it has one; None at the beginning of an episode

    def act(self, obs, mask=None):
        get, a = self.settings.get, self.arrays
        x = (np.asarray(obs, np.float32) - a.get("mean", 0)) * a.get("scale", 1)
        x = x if get("clip") is None else np.clip(x, -get("clip"), get("clip"))
        last = sum(name.startswith("weight_") for name in a) - 1
        for i in range(last):
            x = x @ a[f"weight_{i}"] + a[f"bias_{i}"]
            x = np.tanh(x) if get("activation") == "tanh" else np.maximum(x, 0)
        if "cell_weight" in a:
            x = self.remember(x @ a["cell_weight"] + a["cell_bias"], a["cell_state_weight"], a["cell_state_bias"])
        x = (x @ a[f"weight_{last}"] + a[f"bias_{last}"])[:, : get("num_actions")]
        if get("head") in ("choice", "choices"):
            x = x if mask is None else np.where(mask, x, -np.inf)
            groups = np.split(x, np.cumsum(get("nvec", [x.shape[1]]))[:-1], axis=1)
            chosen = np.stack([group.argmax(1) for group in groups], 1) + np.array(get("start", 0))
            return a["table"][chosen[:, 0]] if "table" in a else chosen[:, 0] if get("head") == "choice" else chosen
        low, high = a.get("low", -1.0), a.get("high", 1.0)
        return np.clip((high + low) / 2 + (high - low) / 2 * np.tanh(x) if get("head") == "tanh" else x, low, high)

    def remember(self, gates, weight, bias):
        state = (
            np.zeros((len(gates), len(weight) * (1 + (self.settings["memory"] == "lstm"))))
            if self.state is None
            else self.state
        )
        old = state[:, : len(weight)] @ weight + bias
        if self.settings["memory"] == "gru":
            (r, z, n), (old_r, old_z, old_n) = np.split(gates, 3, 1), np.split(old, 3, 1)
            z = sigmoid(z + old_z)
            self.state = (1 - z) * np.tanh(n + sigmoid(r + old_r) * old_n) + z * state
            return self.state
        enter, forget, new, leave = np.split(gates + old, 4, 1)
        kept = sigmoid(forget) * state[:, len(weight) :] + sigmoid(enter) * np.tanh(new)
        self.state = np.concatenate([sigmoid(leave) * np.tanh(kept), kept], 1)
        return self.state[:, : len(weight)]
