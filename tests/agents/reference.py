"""PPO as slowly and obviously as possible: one sample at a time, in double precision, gradients by autograd."""

from __future__ import annotations

import math

import torch


def forward(network, obs_row):
    """One observation through the standard network, layer by layer; returns outputs of policy and value."""
    hidden_actor = hidden_critic = obs_row
    for layer in network.actor[::2]:
        hidden_actor = torch.tanh(layer.weight.double() @ hidden_actor + layer.bias.double())
    for layer in network.critic[::2]:
        hidden_critic = torch.tanh(layer.weight.double() @ hidden_critic + layer.bias.double())
    output = network.policy.linear.weight.double() @ hidden_actor + network.policy.linear.bias.double()
    value = network.value.weight.double() @ hidden_critic + network.value.bias.double()
    return output, value[0]


def log_prob_and_entropy(network, output, action, allowed):
    """Of a discrete action under a mask, or of a Gaussian draw."""
    if hasattr(network.policy, "log_std"):
        log_prob = entropy = 0.0
        for mean, log_std, drawn in zip(output, network.policy.log_std.double(), action, strict=True):
            z = (drawn - mean) / log_std.exp()
            log_prob = log_prob - 0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi)
            entropy = entropy + log_std + 0.5 * math.log(2 * math.pi * math.e)
        return log_prob, entropy
    exps = [output[a].exp() if ok else 0.0 * output[a] for a, ok in enumerate(allowed)]
    total = sum(exps)
    probs = [e / total for e in exps]
    entropy = -sum(p * p.log() for p, ok in zip(probs, allowed, strict=True) if ok)
    return probs[int(action)].log(), entropy


def advantages(reward, value, next_value, terminated, truncated, gamma, lam):
    """One lane and one step at a time."""
    T, B = reward.shape
    result = torch.zeros(T, B, dtype=torch.float64)
    for lane in range(B):
        trace = 0.0
        for t in reversed(range(T)):
            ended = bool(terminated[t, lane] or truncated[t, lane])
            beyond = 0.0 if terminated[t, lane] else float(next_value[t, lane])
            delta = float(reward[t, lane]) + gamma * beyond - float(value[t, lane])
            trace = delta if ended else delta + gamma * lam * trace
            result[t, lane] = trace
    return result


def minibatch_loss(network, config, rates, rows, obs, action, mask, old_log_prob, old_value, advantage, target):
    """The mean loss of the samples `rows`; all arguments flattened [T * B, ...], doubles."""
    chosen = [advantage[row] for row in rows]
    mean = sum(chosen) / len(chosen)
    spread = math.sqrt(sum((a - mean) ** 2 for a in chosen) / (len(chosen) - 1))
    total = 0.0
    for row in rows:
        output, value = forward(network, obs[row])
        allowed = [True] * len(output) if mask is None else mask[row].tolist()
        log_prob, entropy = log_prob_and_entropy(network, output, action[row], allowed)
        ratio = torch.exp(log_prob - old_log_prob[row])
        gain = (advantage[row] - mean) / (spread + 1e-8) if config.normalise_advantage else advantage[row]
        clipped = min(max(ratio, 1 - rates.clip), 1 + rates.clip)
        policy_loss = -min(ratio * gain, clipped * gain)
        error = (value - target[row]) ** 2
        if config.value_clip is not None:
            near = old_value[row] + min(max(value - old_value[row], -config.value_clip), config.value_clip)
            error = max(error, (near - target[row]) ** 2)
        total = total + policy_loss + config.value_weight * error - rates.entropy * entropy
    return total / len(rows)
