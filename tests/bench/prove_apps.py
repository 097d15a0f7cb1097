# SPDX-License-Identifier: Apache-2.0
"""What the applications of testdata/jobs/apps train, in PyTorch: the same
networks on the same data, in as many steps, with the same optimizers and
schedules. prove_peers.py calls train_NAME(FOLDER, DRAW); FOLDER is testdata's,
DRAW NumPy's generator. Results have the names that pd-eval gives them.
"""
import gzip
import math
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Last(nn.Module):
    """The outputs of a recurrent layer alone."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)[0]


class Axes(nn.Module):
    def __init__(self, *axes):
        super().__init__()
        self.axes = axes

    def forward(self, x):
        return x.permute(*self.axes)


def learn(nets, optimizer, batches, epochs, loss_of, cosine=True, clip=0, done=None):
    """batches() gives an epoch's batches, loss_of(*batch) a loss. cosine: the
    learning rate falls epoch by epoch along half a cosine."""
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for net in nets:
            net.train()
        for batch in batches():
            loss = loss_of(*batch)
            optimizer.zero_grad()
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_([p for net in nets for p in net.parameters()], clip)
            optimizer.step()
        if cosine:
            schedule.step()
    for net in nets:
        net.eval()


def shuffled(draw, size, *arrays, drop_last=True):
    """A function for learn(): batches of arrays with one order."""
    def batches():
        order = draw.permutation(len(arrays[0]))
        end = len(order) // size * size if drop_last else len(order)
        for i in range(0, end, size):
            part = order[i:i + size]
            yield [a[torch.from_numpy(part)] for a in arrays]
    return batches


def adam(net, rate, **more):
    return torch.optim.Adam(net.parameters(), rate, **more)


def arrays(path, *names):
    with np.load(path) as file:
        return [torch.from_numpy(file[name]) for name in names]


def idx(path):
    with gzip.open(path) as file:
        data = file.read()
    shape = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape).copy())


def mnist(data, kind):
    pictures = idx(f"{data}/mnist/{kind}-images-idx3-ubyte.gz")[:, None].float() / 255
    return pictures, idx(f"{data}/mnist/{kind}-labels-idx1-ubyte.gz").long()


def cifar(path):
    with gzip.open(path) as file:
        rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    pictures = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    return pictures, torch.from_numpy(rows[:, 0].astype(np.int64))


def flipped(x, draw):
    return torch.where(torch.from_numpy(draw.random(len(x)) < 0.5).view(-1, 1, 1, 1), x.flip(3), x)


def conv(before, channels, stride=1):
    return nn.Sequential(nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())


def accuracy(scores, labels):
    return (scores.argmax(1) == labels).float().mean().item()


# Pictures.


def nearness(vectors):
    return vectors @ vectors.T * 10 - 1000 * torch.eye(len(vectors))


def train_image_search(data, draw):
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    std = torch.tensor([0.247, 0.2435, 0.2616]).view(3, 1, 1)
    x, y = cifar(f"{data}/cifar10/data_batch_1.bin.gz")
    test, answers = cifar(f"{data}/cifar10/test_batch_2k.bin.gz")
    net = nn.Sequential(conv(3, 32, 2), conv(32, 64, 2), conv(64, 128), conv(128, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(128, 32))
    vectors = lambda x: F.normalize(net((x - mean) / std))

    def loss_of(x, y):
        others = (y[:, None] == y).float() - torch.eye(len(y))
        wanted = others / others.sum(1, keepdim=True).clamp(min=1)
        return F.cross_entropy(nearness(vectors(flipped(x, draw))), wanted)
    learn([net], adam(net, 0.001), shuffled(draw, 100, x, y), 10, loss_of)
    with torch.no_grad():
        found = torch.cat([a[nearness(vectors(x)).argmax(1)] == a for x, a in zip(test.split(500), answers.split(500))])
    return {"nearest_alike": found.float().mean().item()}


def train_super_resolution(data, draw):
    x, _ = cifar(f"{data}/cifar10/data_batch_1.bin.gz")
    test, _ = cifar(f"{data}/cifar10/test_batch_2k.bin.gz")
    net = nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                        nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 12, 3, padding=1), nn.PixelShuffle(2))

    def error(x):
        low = F.avg_pool2d(x, 2)
        return F.mse_loss(net(low) + F.interpolate(low, scale_factor=2, mode="bilinear"), x)
    learn([net], adam(net, 0.001), shuffled(draw, 32, x), 4, lambda x: error(flipped(x, draw)))
    with torch.no_grad():
        bicubic = F.interpolate(F.avg_pool2d(test, 2), scale_factor=2, mode="bicubic")
        return {"mse": error(test).item(), "mse_bicubic": F.mse_loss(bicubic, test).item()}


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        double = lambda before, after: nn.Sequential(conv(before, after), conv(after, after))
        self.down = nn.ModuleList([double(3, 16), double(16, 32), double(32, 64), double(64, 128)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * c, c, 2, 2) for c in (64, 32, 16)])
        self.twice = nn.ModuleList([double(2 * c, c) for c in (64, 32, 16)])
        self.head = nn.Conv2d(16, 11, 1)

    def forward(self, x):
        seen = []
        for level, net in enumerate(self.down):
            x = net(F.max_pool2d(x, 2) if level else x)
            seen.append(x)
        for up, double, beside in zip(self.up, self.twice, seen[2::-1]):
            x = double(torch.cat([beside, up(x)], 1))
        return self.head(x)


def png(path):
    """Pictures of make_data.py, whose rows are not filtered."""
    data = path.read_bytes()
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    length = struct.unpack(">I", data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41:41 + length]), np.uint8).reshape(height, -1)[:, 1:]
    return torch.from_numpy(rows.reshape((height, width, 3) if kind else (height, width)).copy())


def masks(folder):
    x, y = (torch.stack([png(p) for p in sorted(Path(folder, kind).iterdir())]) for kind in ("images", "masks"))
    return x.permute(0, 3, 1, 2).float() / 127.5 - 1, y.long()


def train_segmentation(data, draw):
    x, y = masks(f"{data}/jobs/apps/segmentation/pictures/train")
    test, answers = masks(f"{data}/jobs/apps/segmentation/pictures/eval")
    net = UNet()
    learn([net], adam(net, 0.002), shuffled(draw, 8, x, y), 10, lambda x, y: F.cross_entropy(net(x), y))
    with torch.no_grad():
        said = torch.cat([net(part).argmax(1) for part in test.split(8)])
    shares = [((said == k) & (answers == k)).sum() / ((said == k) | (answers == k)).sum() for k in range(11)]
    return {"mean_iou": sum(shares).item() / 11, "pixel_acc": (said == answers).float().mean().item()}


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = row[j + 1], min(before + (x != y), row[j] + 1, row[j + 1] + 1)
    return row[-1]


def train_ocr(data, draw):
    names = ("image", "label", "label_length")
    x, y, n = arrays(f"{data}/jobs/apps/ocr/lines/train.npz", *names)
    test, answers, lengths = arrays(f"{data}/jobs/apps/ocr/lines/eval.npz", *names)
    net = nn.Sequential(conv(1, 16), nn.MaxPool2d(2), conv(16, 32), nn.MaxPool2d(2), conv(32, 64), Axes(0, 3, 1, 2), nn.Flatten(2),
                        Last(nn.GRU(448, 64, batch_first=True, bidirectional=True)), nn.Linear(128, 11))
    scores = lambda x: net(x.permute(0, 3, 1, 2).float() / 255).log_softmax(2)

    def loss_of(x, y, n):
        return F.ctc_loss(scores(x).transpose(0, 1), y, torch.full((len(x),), 32), n[:, 0], blank=10)
    learn([net], adam(net, 0.002), shuffled(draw, 32, x, y, n), 4, loss_of, cosine=False, clip=5)
    with torch.no_grad():
        best = torch.cat([scores(part).argmax(2) for part in test.split(64)])
    wrong = [edits([int(k) for k in torch.unique_consecutive(row) if k != 10], answer[:length].tolist())
             for row, answer, length in zip(best, answers, lengths[:, 0])]
    return {"cer": sum(wrong) / int(lengths.sum()), "edits_instance_error": np.mean([w > 0 for w in wrong])}


def train_keypoints(data, draw):
    read = lambda kind: arrays(f"{data}/jobs/apps/keypoints/{kind}.npz", "image", "label")
    (x, y), (test, answers) = read("train"), read("eval")
    net = nn.Sequential(conv(1, 16, 2), conv(16, 32), conv(32, 32, 2), conv(32, 64), conv(64, 64, 2), nn.Flatten(), nn.Linear(2304, 128),
                        nn.ReLU(), nn.Linear(128, 10))
    points = lambda x: net(x.permute(0, 3, 1, 2).float() / 127.5 - 1)
    learn([net], adam(net, 0.002), shuffled(draw, 32, x, y), 40, lambda x, y: F.mse_loss(points(x), y))
    with torch.no_grad():
        return {"mae": (points(test) - answers).abs().mean().item()}


def saved_parameters(path):
    """A .pdiparams file's arrays, in the order of their names."""
    raw, at = Path(path).read_bytes(), 0
    while at < len(raw):
        # Versions and levels; then the element type and extents, a byte
        # before each, as protobuf has them.
        size = struct.unpack("<i", raw[at + 16:at + 20])[0]
        begin, at, extents = at + 20, at + 20 + size, []
        fields = iter(raw[begin:at])
        for tag in fields:
            value, shift = 0, 0
            for byte in fields:
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if tag == 16:
                extents.append(value)
        yield torch.from_numpy(np.frombuffer(raw, np.float32, math.prod(extents), at).reshape(extents).copy())
        at += 4 * math.prod(extents)


def train_distillation(data, draw):
    parts = list(saved_parameters(f"{data}/deploy/lenet.pdiparams"))
    conv_b = [p for p in parts if p.ndim == 1]
    conv_w = [p for p in parts if p.ndim == 4]
    linear = [p for p in parts if p.ndim == 2]

    def teacher(x):
        x = F.max_pool2d(F.relu(F.conv2d(x, conv_w[0], conv_b[0], padding=1)), 2)
        x = F.max_pool2d(F.relu(F.conv2d(x, conv_w[1], conv_b[1])), 2).flatten(1)
        for w, b in zip(linear, conv_b[2:]):
            x = x @ w + b
        return x
    x, y = mnist(data, "train")
    test, answers = mnist(data, "t10k")
    net = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(196, 32), nn.ReLU(), nn.Linear(32, 10))

    def loss_of(x, y):
        x = x * 2 - 1
        scores = net(x)
        with torch.no_grad():
            wanted = (teacher(x) / 4).softmax(1)
        return 14.4 * F.cross_entropy(scores / 4, wanted) + 0.1 * F.cross_entropy(scores, y)
    learn([net], adam(net, 0.003), shuffled(draw, 100, x, y), 5, loss_of)
    with torch.no_grad():
        return {"acc": accuracy(net(test * 2 - 1), answers), "teacher_acc": accuracy(teacher(test * 2 - 1), answers)}


def train_vae(data, draw):
    x, _ = mnist(data, "train")
    test, _ = mnist(data, "t10k")
    encoder, mean, log_variance = nn.Sequential(nn.Linear(784, 256), nn.ReLU()), nn.Linear(256, 16), nn.Linear(256, 16)
    decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))
    net = nn.ModuleList([encoder, mean, log_variance, decoder])

    def nats(x, drawn):
        x = x.flatten(1)
        hidden = encoder(x)
        m, v = mean(hidden), log_variance(hidden)
        code = m + torch.exp(v / 2) * torch.randn_like(m) if drawn else m
        pixels = F.binary_cross_entropy_with_logits(decoder(code), x, reduction="sum")
        return (pixels - 0.5 * (1 + v - m * m - v.exp()).sum()) / len(x)
    learn([net], adam(net, 0.001), shuffled(draw, 128, x, drop_last=False), 5, lambda x: nats(x, True), cosine=False)
    with torch.no_grad():
        return {"loss": nats(test, False).item()}


def train_metric_learning(data, draw):
    x, y = mnist(data, "train")
    test, answers = mnist(data, "t10k")
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))

    def loss_of(x, y):
        vectors = F.normalize(net(x))
        distance, same = 2 - 2 * vectors @ vectors.T, (y[:, None] == y).float()
        positives = (distance * same).sum(1) / same.sum(1)
        return F.relu(positives - (distance + 4 * same).amin(1) + 0.5).mean()
    learn([net], adam(net, 0.001), shuffled(draw, 128, x, y), 3, loss_of, cosine=False)
    with torch.no_grad():
        return {"loss": np.mean([loss_of(*part).item() for part in zip(test.split(100), answers.split(100))])}


def frechet(drawn, real):
    """The Fréchet distance of two normal distributions of pictures [N, 1, 28,
    28] from -1 to 1, at half of their size."""
    a, b = (F.avg_pool2d(x, 2).flatten(1).double().numpy() for x in (drawn, real))
    # The trace of the root of a product is the sum of its eigenvalues' roots.
    roots = np.sqrt(np.linalg.eigvals(np.cov(a.T) @ np.cov(b.T)).real.clip(0))
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + a.var(0, ddof=1).sum() + b.var(0, ddof=1).sum() - 2 * roots.sum())


def judge_gan(data, path):
    """Of the pictures that pd-eval --out wrote."""
    with np.load(path) as file:
        return {"frechet": frechet(torch.from_numpy(file[file.files[0]]), mnist(data, "t10k")[0] * 2 - 1)}


def train_gan(data, draw):
    x, test = mnist(data, "train")[0] * 2 - 1, mnist(data, "t10k")[0] * 2 - 1
    g = nn.Sequential(nn.Linear(64, 3136), nn.Unflatten(1, (64, 7, 7)), nn.BatchNorm2d(64), nn.ReLU(),
                      nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh())
    d = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(),
                      nn.Linear(3136, 1))
    for net in [*g, *d]:
        if hasattr(net, "weight") and net.weight.ndim > 1:
            nn.init.normal_(net.weight, 0, 0.02)
            nn.init.zeros_(net.bias)
    of_g, of_d = (torch.optim.Adam(net.parameters(), 0.0002, (0.5, 0.999)) for net in (g, d))
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    judge = F.binary_cross_entropy_with_logits

    def step(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for _ in range(2):
        for part, in shuffled(draw, 64, x)():
            step(of_d, judge(d(part), ones) + judge(d(g(torch.randn(64, 64)).detach()), zeros))
            step(of_g, judge(d(g(torch.randn(64, 64))), ones))
    g.eval()
    with torch.no_grad():
        drawn = torch.cat([g(torch.randn(500, 64)) for _ in range(20)])
    return {"frechet": frechet(drawn, test)}


# Points, series, tables.


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        look = lambda before, after: nn.Sequential(nn.Conv1d(before, after, 1), nn.BatchNorm1d(after), nn.ReLU())
        hidden = lambda before, after: nn.Sequential(nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU())
        self.turn = nn.Sequential(look(3, 32), look(32, 128))
        self.turn3, self.turn4 = hidden(128, 64), nn.Linear(64, 9)
        nn.init.zeros_(self.turn4.weight)
        self.turn4.bias.data = torch.eye(3).flatten()
        self.look = nn.Sequential(look(3, 32), look(32, 64), look(64, 256))
        self.head = nn.Sequential(hidden(256, 128), nn.Dropout(0.3), nn.Linear(128, 6))

    def forward(self, points):
        matrix = self.turn4(self.turn3(self.turn(points.transpose(1, 2)).amax(2))).view(-1, 3, 3)
        return self.head(self.look((points @ matrix).transpose(1, 2)).amax(2))


def train_point_cloud(data, draw):
    read = lambda kind: arrays(f"{data}/jobs/apps/point_cloud/{kind}.npz", "points", "label")
    (x, y), (test, answers) = read("train"), read("eval")
    net = PointNet()
    learn([net], adam(net, 0.002), shuffled(draw, 32, x, y[:, 0]), 30, lambda x, y: F.cross_entropy(net(x), y))
    with torch.no_grad():
        return {"acc": accuracy(net(test), answers[:, 0])}


def area_under_curve(scores, labels):
    above = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    return float((above > 0).float().mean() + 0.5 * (above == 0).float().mean())


def train_anomaly(data, draw):
    x, = arrays(f"{data}/jobs/apps/anomaly/train.npz", "window")
    test, answers = arrays(f"{data}/jobs/apps/anomaly/eval.npz", "window", "label")
    net = nn.Sequential(nn.Conv1d(1, 32, 7, 3, 3), nn.ReLU(), nn.Conv1d(32, 16, 7, 4, 3), nn.ReLU(), nn.Conv1d(16, 2, 3, padding=1),
                        nn.ConvTranspose1d(2, 32, 4, 4), nn.ReLU(), nn.ConvTranspose1d(32, 32, 3, 3), nn.ReLU(),
                        nn.Conv1d(32, 1, 7, padding=3))
    learn([net], adam(net, 0.003), shuffled(draw, 32, x), 60, lambda x: F.mse_loss(net(x), x))
    with torch.no_grad():
        score = F.avg_pool1d((net(test) - test).abs(), 12).amax((1, 2))
    return {"auc": area_under_curve(score, answers[:, 0])}


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = ((401, 16), (2, 4), (7, 4), (21, 4))
        self.person = nn.ModuleList([nn.Embedding(*size) for size in sizes])
        self.person_fc = nn.Linear(28, 16)
        self.movie, self.movie_fc = nn.Embedding(251, 16), nn.Linear(16, 16)
        self.kinds = nn.Embedding(18, 16)

    def forward(self, person, movie, kinds):
        person = torch.cat([table(person[:, k]) for k, table in enumerate(self.person)], 1)
        film = self.movie_fc(self.movie(movie)) + kinds @ self.kinds.weight / kinds.sum(1, keepdim=True)
        return (self.person_fc(person) * film).sum(1) + 2


def movielens(path):
    with zipfile.ZipFile(path) as file:
        read = lambda name: [line.split("::") for line in file.read(f"ml-1m/{name}.dat").decode("latin-1").splitlines()]
        movies, users, ratings = read("movies"), read("users"), read("ratings")
    ages = ["1", "18", "25", "35", "45", "50", "56"]
    person = {u[0]: [int(u[0]), int(u[1] == "F"), ages.index(u[2]), int(u[3])] for u in users}
    names = sorted({kind for m in movies for kind in m[2].split("|")})
    kinds = {m[0]: [float(k < len(names) and names[k] in m[2].split("|")) for k in range(18)] for m in movies}
    # Every record draws whether it is one to test by, as PaddlePaddle's class.
    test = np.random.RandomState(0).random_sample(len(ratings)) < 0.1
    for part in (test == 0, test):
        rows = [r for r, mine in zip(ratings, part) if mine]
        yield [torch.tensor([person[r[0]] for r in rows]), torch.tensor([int(r[1]) for r in rows]),
               torch.tensor([kinds[r[1]] for r in rows]), torch.tensor([2.0 * int(r[2]) - 5 for r in rows])]


def train_recommendation(data, draw):
    train, test = movielens(f"{data}/jobs/apps/recommendation/ml-1m.zip")
    net = Ratings()
    learn([net], adam(net, 0.003, weight_decay=3e-3), shuffled(draw, 128, *train), 10, lambda *x: F.mse_loss(net(*x[:3]), x[3]),
          cosine=False)
    with torch.no_grad():
        error = net(*test[:3]) - test[3]
    return {"loss": (error * error).mean().item(), "mae": error.abs().mean().item()}
