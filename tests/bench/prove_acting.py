# SPDX-License-Identifier: Apache-2.0
"""The applications of testdata/jobs/apps in which a network acts, in PyTorch:
the same networks, environments, batches and optimizers. prove_peers.py calls
train_NAME(FOLDER, DRAW); DRAW is NumPy's generator.
"""
import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class CartPoles:
    """Poles on carts, side by side: cartpole.c."""

    def __init__(self, count, draw):
        self.draw, self.steps = draw, np.zeros(count, int)
        self.state = draw.uniform(-0.05, 0.05, (count, 4))

    def seen(self):
        return self.state.astype(np.float32)

    def step(self, action):
        """What came of the actions: rewards, ended, cut off, observations; those
        of which the episode is over begin anew."""
        place, speed, angle, turning = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        c, s = np.cos(angle), np.sin(angle)
        pull = (force + 0.05 * turning**2 * s) / 1.1
        turn = (9.8 * s - c * pull) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
        run = pull - 0.05 * turn * c / 1.1
        self.state = self.state + 0.02 * np.stack([speed, run, turning, turn], 1)
        self.steps += 1
        ended = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > np.radians(12))
        cut = ~ended & (self.steps == 500)
        after = self.seen()
        self.begin(ended | cut)
        return np.ones(len(after), np.float32), ended, cut, after

    def begin(self, over):
        self.state[over] = self.draw.uniform(-0.05, 0.05, (int(over.sum()), 4))
        self.steps[over] = 0


class Pendulums:
    """Pendulums that a motor swings up, side by side: pendulum.c."""

    def __init__(self, count, draw):
        self.draw, self.steps = draw, np.zeros(count, int)
        self.angle, self.speed = draw.uniform(-np.pi, np.pi, count), draw.uniform(-1, 1, count)

    def seen(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed], 1).astype(np.float32)

    def step(self, action):
        torque = np.clip(action.reshape(-1), -2, 2)
        off = (self.angle + np.pi) % (2 * np.pi) - np.pi
        reward = -(off**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
        self.speed = np.clip(self.speed + 0.05 * (15 * np.sin(self.angle) + 3 * torque), -8, 8)
        self.angle = self.angle + 0.05 * self.speed
        self.steps += 1
        cut = self.steps == 200
        after = self.seen()
        self.angle[cut] = self.draw.uniform(-np.pi, np.pi, int(cut.sum()))
        self.speed[cut] = self.draw.uniform(-1, 1, int(cut.sum()))
        self.steps[cut] = 0
        return reward.astype(np.float32), np.zeros_like(cut), cut, after


def mean_return(make, choose, draw, episodes=100):
    """Of the first episode of each of so many environments."""
    env = make(episodes, draw)
    total, playing = np.zeros(episodes), np.ones(episodes, bool)
    while playing.any():
        with torch.no_grad():
            action = choose(torch.from_numpy(env.seen())).numpy()
        reward, ended, cut, _ = env.step(action)
        total += reward * playing
        playing &= ~(ended | cut)
    return {"episode_return": float(total.mean())}


def mlp(sizes, between):
    layers = []
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        linear = nn.Linear(before, after)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += ([between()] if i else []) + [linear]
    return nn.Sequential(*layers)


def drawn(logits):
    return torch.distributions.Categorical(logits=logits).sample()


def roll_out(env, actor, steps, whole):
    """Rows of observation, action, return, discount, observation at the end."""
    rows = []
    for _ in range(steps):
        seen = env.seen()
        with torch.no_grad():
            action = drawn(actor(torch.from_numpy(seen))).numpy()
        reward, ended, cut, after = env.step(action)
        rows.append((seen, action, reward, ended, cut, after))
        if whole and (ended | cut).all():
            break
    out, total, factor, last = [], 0, 1, None
    for i in reversed(range(len(rows))):
        seen, action, reward, ended, cut, after = rows[i]
        over = ended | cut if last is not None else np.ones(len(seen), bool)
        total = reward + 0.99 * np.where(over, 0, total)
        factor = 0.99 * np.where(over, ~ended, factor)
        last = after if last is None else np.where(over[:, None], after, last)
        out.append((seen, action, total, factor, last))
    return [torch.from_numpy(np.concatenate(column).astype(kind))
            for column, kind in zip(zip(*out), (np.float32, int, *[np.float32] * 3))]


def train_by_roll_outs(env, nets, optimizer, batches, steps, whole, loss_of, clip=0):
    actor, critic = nets
    for _ in range(batches):
        seen, action, total, factor, last = roll_out(env, actor, steps, whole)
        target = total + factor * critic(last)[:, 0].detach()
        value, logits = critic(seen)[:, 0], actor(seen)
        advantage = (target - value).detach()
        likely = F.cross_entropy(logits, action, reduction="none")
        loss = (likely * advantage).mean() + loss_of(value, target, logits)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], clip)
        optimizer.step()


def train_actor_critic(data, draw):
    actor, critic = mlp([4, 128, 2], nn.ReLU), mlp([4, 128, 1], nn.ReLU)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 0.002)
    train_by_roll_outs(CartPoles(1, draw), (actor, critic), optimizer, 300, 500, True,
                       lambda value, target, logits: F.smooth_l1_loss(value, target))
    return mean_return(CartPoles, lambda x: actor(x).argmax(1), draw)


def train_advantage_actor_critic(data, draw):
    actor, critic = mlp([4, 64, 64, 2], nn.Tanh), mlp([4, 64, 64, 1], nn.Tanh)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 0.001)

    def loss_of(value, target, logits):
        log_p = F.log_softmax(logits, 1)
        return 0.5 * F.mse_loss(value, target) + 0.01 * (log_p.exp() * log_p).sum(1).mean()

    train_by_roll_outs(CartPoles(8, draw), (actor, critic), optimizer, 1500, 16, False, loss_of,
                       clip=0.5)
    return mean_return(CartPoles, lambda x: actor(x).argmax(1), draw)


def train_ddpg(data, draw):
    torque, critic = mlp([3, 256, 256, 1], nn.ReLU), mlp([4, 256, 256, 1], nn.ReLU)
    nn.init.uniform_(torque[-1].weight, -0.003, 0.003)
    actor = lambda net, x: 2 * torch.tanh(net(x))
    followers = [(torque, copy.deepcopy(torque)), (critic, copy.deepcopy(critic))]
    optimizers = [torch.optim.Adam(critic.parameters(), 0.002),
                  torch.optim.Adam(torque.parameters(), 0.001)]
    env = Pendulums(1, draw)
    memory = []
    while len(memory) < 13000:
        seen = env.seen()
        with torch.no_grad():
            action = actor(torque, torch.from_numpy(seen)).numpy()
        action = np.clip(action + draw.normal(0, 0.2, action.shape), -2, 2).astype(np.float32)
        reward, _, _, after = env.step(action)
        memory.append((seen[0], action[0], reward, after[0]))
        if len(memory) <= 1000:
            continue
        batch = [memory[i] for i in draw.integers(0, len(memory), 64)]
        seen, action, reward, after = (torch.from_numpy(np.stack(x)) for x in zip(*batch))
        with torch.no_grad():
            plan = actor(followers[0][1], after)
            target = reward + 0.99 * followers[1][1](torch.cat([after, plan], 1))
        losses = (lambda: F.mse_loss(critic(torch.cat([seen, action], 1)), target),
                  lambda: -critic(torch.cat([seen, actor(torque, seen)], 1)).mean())
        for optimizer, loss in zip(optimizers, losses):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        with torch.no_grad():
            for net, target_net in followers:
                for p, q in zip(net.parameters(), target_net.parameters()):
                    q.lerp_(p, 0.005)
    return mean_return(Pendulums, lambda x: actor(torque, x), draw)
