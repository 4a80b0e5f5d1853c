"""SAC and DDDQN as slowly and obviously as possible: one transition at a time, in double precision, by autograd."""

from __future__ import annotations

import math

import torch


class Net:
    """A copy of one tower of `Towers`, as a list of (weight [out, in], bias [out]) that autograd follows."""

    def __init__(self, towers, k):
        layers = zip(towers.weights, towers.biases, strict=True)
        self.layers = [
            (w.detach()[k].T.double().clone().requires_grad_(), b.detach()[k, 0].double().clone().requires_grad_())
            for w, b in layers
        ]

    def __call__(self, x):
        for i, (weight, bias) in enumerate(self.layers):
            x = weight @ x + bias
            if i < len(self.layers) - 1:
                x = torch.where(x > 0, x, torch.zeros_like(x))
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer]

    def flat(self):
        return torch.cat([p.detach().flatten() for p in self.parameters()])


def adam_first_step(parameters, grads, lr, eps=1e-8):
    """The first step of Adam moves every parameter by lr * g / (|g| + eps)."""
    with torch.no_grad():
        for p, g in zip(parameters, grads, strict=True):
            p -= lr * g / (g.abs() + eps)


def gaussian_action(out, noise):
    """tanh of a normal, and its log-density by the change of variables."""
    size = len(noise)
    action, log_prob = [], 0.0
    for d in range(size):
        mean, log_std = out[d], out[size + d].clamp(-20, 2)
        drawn = mean + log_std.exp() * noise[d]
        log_prob = log_prob - 0.5 * noise[d] ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        log_prob = log_prob - torch.log(1 - torch.tanh(drawn) ** 2)
        action.append(torch.tanh(drawn))
    return torch.stack(action), log_prob


def together(agent, estimates):
    """The smaller of two estimates, as far as the agent is pessimistic, and their mean for the rest."""
    return agent.sac.pessimism * min(estimates) + (1 - agent.sac.pessimism) * sum(estimates) / 2


def sac_update(agent, rows, weights, noise):
    """The first update of `agent` from transitions `rows`, dicts of doubles; returns the networks after it."""
    actor, critics = Net(agent.actor, 0), [Net(agent.critics, k) for k in range(2)]
    targets, alpha = [Net(agent.target_critics, k) for k in range(2)], math.exp(agent.temperature.log.item())
    critic_loss, errors = 0.0, []
    for i, row in enumerate(rows):
        with torch.no_grad():
            action, log_prob = gaussian_action(actor(row["next_obs"]), noise[len(rows) + i])
            q = together(agent, [target(torch.cat([row["next_obs"], action]))[0] for target in targets])
            wanted = row["reward"] + row["discount"] * (q - alpha * log_prob)
        gaps = [critic(torch.cat([row["obs"], row["action"]]))[0] - wanted for critic in critics]
        critic_loss = critic_loss + weights[i] * sum(0.5 * gap**2 for gap in gaps) / len(rows)
        errors.append(float(sum(abs(gap.detach()) for gap in gaps)) / 2)
    critic_parameters = [p for critic in critics for p in critic.parameters()]
    adam_first_step(critic_parameters, torch.autograd.grad(critic_loss, critic_parameters), agent.lr)

    actor_loss, entropy = 0.0, 0.0
    for i, row in enumerate(rows):
        action, log_prob = gaussian_action(actor(row["obs"]), noise[i])
        q = together(agent, [critic(torch.cat([row["obs"], action]))[0] for critic in critics])
        actor_loss = actor_loss + (alpha * log_prob - q) / len(rows)
        entropy -= float(log_prob.detach()) / len(rows)
    adam_first_step(actor.parameters(), torch.autograd.grad(actor_loss, actor.parameters()), agent.lr)
    slope = entropy - agent.target_entropy
    log_alpha = math.log(alpha) - agent.lr * slope / (abs(slope) + 1e-8)
    tau = agent.sac.tau
    for target, critic in zip(targets, critics, strict=True):
        with torch.no_grad():
            for old, new in zip(target.parameters(), critic.parameters(), strict=True):
                old += tau * (new - old)
    return {"actor": [actor], "critics": critics, "target_critics": targets}, log_alpha, errors


def duel(out):
    """One value and A advantages as action values."""
    return out[0] + out[1:] - out[1:].mean()


def dddqn_update(agent, rows, weights):
    """The first update of `agent`; returns the network after it and the errors."""
    network, target = Net(agent.network, 0), Net(agent.target_network, 0)
    loss, errors = 0.0, []
    for i, row in enumerate(rows):
        with torch.no_grad():
            scores = duel(network(row["next_obs"]))
            allowed = [a for a in range(len(scores)) if row["next_mask"][a] > 0] or [0]
            best = max(allowed, key=lambda a: float(scores[a]))
            wanted = row["reward"] + row["discount"] * duel(target(row["next_obs"]))[best]
        gap = duel(network(row["obs"]))[int(row["action"])] - wanted
        cost = gap**2 if agent.dqn.loss == "squared" else 0.5 * gap**2 if abs(gap) < 1 else abs(gap) - 0.5
        loss = loss + weights[i] * cost / len(rows)
        errors.append(abs(float(gap.detach())))
    grads = torch.autograd.grad(loss, network.parameters())
    norm = math.sqrt(sum(float((g**2).sum()) for g in grads))
    shorten = min(1.0, agent.dqn.max_grad_norm / (norm + 1e-6))
    adam_first_step(network.parameters(), [g * shorten for g in grads], agent.lr)
    return network, errors
