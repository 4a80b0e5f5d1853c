"""Reads a stored policy with NumPy alone: `Policy("policy.safetensors").act(obs)`, obs [N, D] as one flat row each."""

import json

import numpy as np


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def windows(x, side, stride, padding, edge):
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), constant_values=edge)
    return np.lib.stride_tricks.sliding_window_view(x, (side, side), (1, 2))[:, ::stride, ::stride]


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
        x = ((np.asarray(obs, np.float32) - a.get("mean", 0)) * a.get("scale", 1)).astype(np.float32)
        clip = a.get("clip", get("clip"))
        x = x if clip is None else np.clip(x, -clip, clip)
        if get("eyes"):  # in parts, as windows of many images fill memory
            x = np.concatenate([self.look(x[i : i + 32]) for i in range(0, len(x), 32)])
        last = sum(name.startswith("weight_") for name in a) - 1
        for i in range(last):
            x = self.activate(x @ a[f"weight_{i}"] + a[f"bias_{i}"])
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

    def activate(self, x):
        return np.tanh(x) if self.settings.get("activation") == "tanh" else np.maximum(x, 0)

    def remember(self, gates, weight, bias):
        lstm = self.settings["memory"] == "lstm"
        state = np.zeros((len(gates), len(weight) * (1 + lstm))) if self.state is None else self.state
        old = state[:, : len(weight)] @ weight + bias
        if not lstm:
            (r, z, n), (old_r, old_z, old_n) = np.split(gates, 3, 1), np.split(old, 3, 1)
            z = sigmoid(z + old_z)
            self.state = (1 - z) * np.tanh(n + sigmoid(r + old_r) * old_n) + z * state
            return self.state
        enter, forget, new, leave = np.split(gates + old, 4, 1)
        kept = sigmoid(forget) * state[:, len(weight) :] + sigmoid(enter) * np.tanh(new)
        self.state = np.concatenate([sigmoid(leave) * np.tanh(kept), kept], 1)
        return self.state[:, : len(weight)]

    def look(self, rows):
        """Features of the images in rows [N, D], then the other numbers, through layers of their own."""
        a, beside, features = self.arrays, np.ones(rows.shape[1], bool), []
        for i, eye in enumerate(self.settings["eyes"]):
            columns = slice(eye["start"], eye["start"] + int(np.prod(eye["shape"])))
            beside[columns] = False
            *planes, down, across = (1 + axis for axis in eye["order"])
            x = rows[:, columns].reshape(-1, *eye["shape"]).transpose(0, down, across, *planes)
            x = self.see(x.reshape(*x.shape[:3], -1) - np.float32(eye["low"]), eye["steps"], f"eye_{i}_")
            features.append(np.maximum(x.reshape(len(x), -1) @ a[f"eye_{i}_weight"] + a[f"eye_{i}_bias"], 0))
        x = rows[:, beside]
        for i in range(sum(name.startswith("numbers_") for name in a) // 2):
            x = self.activate(x @ a[f"numbers_{i}_weight"] + a[f"numbers_{i}_bias"])
        return np.concatenate([*features, x], 1)

    def see(self, x, steps, name):
        """Convolutions over images x [N, height, width, channels]."""
        kept, convs = x, 0
        for kind, *how in steps:
            if kind == "conv":
                stride, padding = how
                weight, bias = self.arrays[f"{name}conv_{convs}_weight"], self.arrays[f"{name}conv_{convs}_bias"]
                seen = windows(x, len(weight), stride, padding, 0).transpose(0, 1, 2, 4, 5, 3)
                x = seen.reshape(*seen.shape[:3], -1) @ weight.reshape(-1, len(bias)) + bias
                convs += 1
            elif kind == "pool":
                x = windows(x, 3, 2, 1, -np.inf).max((4, 5))
            elif kind == "keep":
                kept = x
            else:
                x = x + kept if kind == "add" else np.maximum(x, 0)
        return x
