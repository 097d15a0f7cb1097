# SPDX-License-Identifier: Apache-2.0
"""What the applications of testdata/jobs/apps that read texts train, in PyTorch;
see prove_apps.py.
"""
import gzip
import math
import re
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from prove_apps import accuracy, adam, learn, shuffled

MARKS = ["<pad>", "<unk>", "<s>", "</s>"]


def lines(path):
    read = gzip.open if str(path).endswith(".gz") else open
    with read(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().splitlines()


def basic(text):
    """Words, numbers and each other mark, in lower case."""
    return re.findall(r"[^\W_]+|[^\w\s]|_", text.lower())


def numbered(texts, limit=None):
    """The numbers of words, the most frequent first."""
    counts = Counter(word for text in texts for word in text)
    words = sorted(counts, key=lambda word: -counts[word])
    return {word: k for k, word in enumerate((MARKS + words)[:limit])}


def ids(text, known):
    return torch.tensor([known.get(word, 1) for word in text])


def padded(texts):
    return pad_sequence(texts, batch_first=True)


def read_both_ways(rnn, x, lengths):
    """The outputs of a recurrent layer, 0 behind the ends of texts; its states."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, state = rnn(packed)
    return pad_packed_sequence(out, batch_first=True)[0], state


# Sums.


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(16, 16)
        self.encoder, self.decoder = nn.LSTM(16, 128, batch_first=True), nn.LSTM(128, 128, batch_first=True)
        self.scores = nn.Linear(128, 15)

    def forward(self, question):
        _, (last, _) = self.encoder(self.vectors(question))
        return self.scores(self.decoder(last.transpose(0, 1).expand(-1, 3, -1))[0]).transpose(1, 2)


def train_addition(data, draw):
    pairs = [[line.split("\t") for line in lines(f"{data}/jobs/apps/addition/{kind}.tsv.gz")] for kind in ("train", "eval")]
    known = [numbered([pair[k] for pair in pairs[0]]) for k in (0, 1)]
    (x, y), (test, answers) = [[torch.stack([ids(pair[k], known[k]) for pair in part]) for k in (0, 1)] for part in pairs]
    net = Adder()
    learn([net], adam(net, 0.01), shuffled(draw, 64, x, y), 30, lambda x, y: F.cross_entropy(net(x), y))
    with torch.no_grad():
        right = net(test).argmax(1) == answers
    return {"acc": right.float().mean().item(), "edits_instance_error": (~right.all(1)).float().mean().item()}


# Words of a book.


def train_ngram(data, draw):
    words = [word for line in lines(f"{data}/text/moby-dick.txt.gz") for word in basic(line)]
    known = numbered([words], 3000)
    all_ids = ids(words, known)
    count = (len(all_ids) - 1) // 32
    x, y = all_ids[:count * 32].view(-1, 32), all_ids[1:count * 32 + 1].view(-1, 32)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.vectors, self.four, self.scores = nn.Embedding(3000, 64), nn.Conv1d(64, 128, 4), nn.Linear(128, 3000)

        def forward(self, x):
            before = F.pad(self.vectors(x).transpose(1, 2), (3, 0))
            return self.scores(torch.tanh(self.four(before)).transpose(1, 2)).transpose(1, 2)
    net = Net()
    learn([net], adam(net, 0.002), shuffled(draw, 16, x[:7200], y[:7200]), 2, lambda x, y: F.cross_entropy(net(x), y))
    with torch.no_grad():
        loss = F.cross_entropy(net(x[7200:]), y[7200:]).item()
    return {"records": count - 7200, "perplexity": math.exp(loss)}


# Reviews.


class Reviews(nn.Module):
    def __init__(self, rnn, vectors, before=0.0, behind=0.0):
        super().__init__()
        self.vectors, self.rnn = vectors, rnn
        self.before, self.behind = nn.Dropout(before), nn.Dropout(behind)
        self.fc = nn.Linear(2 * rnn.hidden_size, 2)

    def forward(self, texts):
        lengths = torch.tensor([len(text) for text in texts])
        out, _ = read_both_ways(self.rnn, self.before(self.vectors(padded(texts))), lengths)
        return self.fc(self.behind(out.amax(1)))


def reviews(path, known=None):
    rows = [line.split("\t") for line in lines(path)]
    texts = [basic(row[1]) for row in rows]
    known = known or numbered(texts)
    return [ids(text, known) for text in texts], torch.tensor([row[0] == "good" for row in rows]).long(), known


def classify(net, optimizer, train, test, size, epochs, draw, **more):
    x, y = train

    def batches():
        order = draw.permutation(len(x))
        for part in order[:len(order) // size * size].reshape(-1, size):
            yield [x[k] for k in part], y[torch.from_numpy(part)]
    learn([net], optimizer, batches, epochs, lambda x, y: F.cross_entropy(net(x), y), **more)
    with torch.no_grad():
        scores = net(test[0])
        return {"loss": F.cross_entropy(scores, test[1]).item(), "acc": accuracy(scores, test[1])}


def train_text_classification(data, draw):
    folder = f"{data}/jobs/apps/text_classification"
    x, y, known = reviews(f"{folder}/train.tsv.gz")
    test = reviews(f"{folder}/eval.tsv.gz", known)[:2]
    net = Reviews(nn.LSTM(32, 64, batch_first=True, bidirectional=True), nn.Embedding(len(known), 32, 0), behind=0.3)
    return classify(net, adam(net, 0.002), (x, y), test, 32, 10, draw, clip=1)


def train_word_vectors(data, draw):
    folder = f"{data}/jobs/apps/word_vectors"
    known = {word: k for k, word in enumerate(lines(f"{folder}/words.txt"))}
    rows = np.loadtxt(f"{folder}/vectors.txt", dtype=np.float32, usecols=range(1, 5), comments=None)
    # Those of <pad>, zeros, and of <unk>.
    table = torch.from_numpy(np.concatenate([np.zeros((1, 4), np.float32), rows.mean(0, keepdims=True), rows]))
    x, y, _ = reviews(f"{folder}/train.tsv", known)
    test = reviews(f"{data}/jobs/apps/text_classification/eval.tsv.gz", known)[:2]
    net = Reviews(nn.GRU(4, 16, batch_first=True, bidirectional=True), nn.Embedding.from_pretrained(table), before=0.3)
    return classify(net, adam(net, 0.01), (x, y), test, 20, 40, draw, cosine=False)


# English and German.


class Translator(nn.Module):
    def __init__(self, source, target):
        super().__init__()
        self.source, self.target = nn.Embedding(source, 64, 0), nn.Embedding(target, 64, 0)
        self.encoder = nn.GRU(64, 64, batch_first=True, bidirectional=True)
        self.bridge, self.query = nn.Linear(128, 128), nn.Linear(128, 128, bias=False)
        self.decoder = nn.GRU(64, 128, batch_first=True)
        self.mix, self.scores = nn.Linear(256, 128), nn.Linear(128, target)

    def encode(self, x):
        memory, state = read_both_ways(self.encoder, self.source(x), (x != 0).sum(1))
        return memory, (x == 0)[:, None] * -10000.0, torch.tanh(self.bridge(state.transpose(0, 1).reshape(1, len(x), 128)))

    def decode(self, words, memory, hidden_places, state):
        out, state = self.decoder(self.target(words), state)
        attention = (self.query(out) @ memory.transpose(1, 2) * 0.088 + hidden_places).softmax(2)
        return self.scores(torch.tanh(self.mix(torch.cat([out, attention @ memory], 2)))), state


def search(net, text, beams, limit):
    """The likeliest translation that a search with so many beams finds."""
    memory, hidden_places, state = net.encode(text[None])
    live, done = [(0.0, [2], state)], []
    for _ in range(limit):
        reached = []
        for score, words, state in live:
            scores, after = net.decode(torch.tensor([words[-1:]]), memory, hidden_places, state)
            best = scores[0, 0].log_softmax(0).topk(beams)
            reached += [(score + s, words + [w], after) for s, w in zip(best.values.tolist(), best.indices.tolist())]
        reached.sort(key=lambda one: -one[0])
        done += [one for one in reached[:beams] if one[1][-1] == 3]
        live = [one for one in reached[:beams] if one[1][-1] != 3]
        if not live or (done and max(d[0] for d in done) >= live[0][0]):
            break
    words = max(done or live, key=lambda one: one[0])[1][1:]
    return words[:-1] if words[-1:] == [3] else words


def bleu(said, right):
    """Papineni and others, 2002, up to four words, of a whole set."""
    logs = 0.0
    for size in range(1, 5):
        grams = lambda text: Counter(tuple(text[k:k + size]) for k in range(len(text) - size + 1))
        hits = sum(sum((grams(a) & grams(b)).values()) for a, b in zip(said, right))
        logs += math.log(max(hits, 1e-9) / max(sum(max(len(a) - size + 1, 0) for a in said), 1)) / 4
    short = 1 - sum(map(len, right)) / max(sum(map(len, said)), 1)
    return math.exp(logs + min(short, 0))


def train_translation(data, draw):
    folder, size = f"{data}/jobs/apps/translation", 40
    texts = {name: [line.split() for line in lines(f"{folder}/{name}.gz")] for name in ("train.en", "train.de", "eval.en", "eval.de")}
    english, german = numbered(texts["train.en"]), numbered(texts["train.de"])
    x, test = ([ids(t, english) for t in texts[kind]] for kind in ("train.en", "eval.en"))
    y, answers = ([ids(t, german) for t in texts[kind]] for kind in ("train.de", "eval.de"))
    net = Translator(len(english), len(german))

    def score(x, y):
        begin, end = torch.tensor([2]), torch.tensor([3])
        scores, _ = net.decode(padded([torch.cat([begin, one]) for one in y]), *net.encode(padded(x)))
        return scores.transpose(1, 2), padded([torch.cat([one, end]) for one in y])

    def batches():
        for part in draw.permutation(len(x))[:len(x) // size * size].reshape(-1, size):
            yield [x[k] for k in part], [y[k] for k in part]
    learn([net], adam(net, 0.003), batches, 10, lambda x, y: F.cross_entropy(*score(x, y), ignore_index=0), clip=1)
    with torch.no_grad():
        scores, wanted = score(test, answers)
        said = [search(net, text, 3, 16) for text in test]
    return {"loss": F.cross_entropy(scores, wanted, ignore_index=0).item(), "bleu": bleu(said, [a.tolist() for a in answers])}


# The same book, character by character.


class Gpt(nn.Module):
    def __init__(self, words, size=128, heads=4, layers=4, places=256):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(places, size)
        one = nn.TransformerEncoderLayer(size, heads, 4 * size, 0.1, "gelu", batch_first=True, norm_first=True)
        # Nothing is dropped between the two matrices of a layer.
        one.dropout.p = 0
        self.layers = nn.TransformerEncoder(one, layers, nn.LayerNorm(size), enable_nested_tensor=False)
        # Copies of one layer would begin alike.
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, 0, 0.02)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        read = self.layers(self.dropout(self.words(x) + self.places(places)), later, is_causal=True)
        return read @ self.words.weight.T


def train_text_generation(data, draw):
    text = "\n".join(lines(f"{data}/text/moby-dick.txt.gz")) + "\n"
    every = ids(text, numbered([text]))
    begins = torch.arange(0, len(every) - 256, 64)[:16800]
    windows = lambda begins: every[begins[:, None] + torch.arange(257)]
    net = Gpt(87)
    optimizer = torch.optim.AdamW(net.parameters(), 0.002, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900)
    for part in draw.permutation(len(begins))[:900 * 16].reshape(-1, 16):
        w = windows(begins[torch.from_numpy(part)])
        loss = F.cross_entropy(net(w[:, :-1]).transpose(1, 2), w[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        schedule.step()
    net.eval()
    test = windows(torch.arange(0, len(every) - 256, 256)[4264:])
    with torch.no_grad():
        loss = np.mean([F.cross_entropy(net(w[:, :-1]).transpose(1, 2), w[:, 1:]).item() for w in test.split(16)])
    return {"bits_per_character": loss / math.log(2)}
