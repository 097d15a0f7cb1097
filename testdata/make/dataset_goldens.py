#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes testdata/datasets: small archives laid out as the data sets that
paddle.vision.datasets and paddle.text.datasets read, with invented content, and
what PaddlePaddle's classes give for them.

    python3 -m venv venv && venv/bin/pip install paddlepaddle==2.6.2 scipy==1.11.4
    venv/bin/python testdata/make/dataset_goldens.py

Beside each archive, <case>.npz holds what the class gave: for each field the
values of all records, one behind the other (`doc`), and how many each record
has (`doc.length`). Where PaddlePaddle numbers words by the order of a Python
set, which changes from run to run, the numbers are put into the order in which
the file first names the words. The same cases are in
tests/data/test_paddle_datasets.cc.
"""
import gzip
import io
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile

import numpy as np
import paddle
import scipy.io
from paddle.text import (WMT14, WMT16, Conll05st, Imdb, Imikolov, Movielens,
                         UCIHousing)
from paddle.vision.datasets import VOC2012, Cifar10, Cifar100, Flowers
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent / "datasets"
RNG = np.random.RandomState(7)


def pack(path, members, mode="w:gz", form=tarfile.USTAR_FORMAT):
    """A tar of (name, bytes or None for a folder), the same on every run."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            tar.addfile(info, None if content is None else io.BytesIO(content))
    data = raw.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if mode.endswith("gz") else data)


def save(path, records, fields):
    """`records`: a tuple of arrays each; `fields`: (name, dtype)."""
    arrays = {}
    for i, (name, dtype) in enumerate(fields):
        values = [np.asarray(r[i]) for r in records]
        flat = np.concatenate([v.reshape(-1) for v in values])
        assert (flat.astype(dtype) == flat).all() or dtype == np.float32, name
        arrays[name] = flat.astype(dtype)
        arrays[name + ".length"] = np.array([v.size for v in values])
    np.savez_compressed(path, **arrays)


IMAGE_LABEL = [("image", np.uint8), ("label", np.int64)]


def pickle_of_python2(content):
    """A dict of str, lists of int and str, and a uint8 matrix, as Python 2's
    cPickle wrote it by protocol 2: text is bytes, there is no unicode."""
    def value(v):
        if isinstance(v, str):
            return b"U" + bytes([len(v)]) + v.encode()
        if isinstance(v, int):
            return b"K" + bytes([v])
        if isinstance(v, list):
            return b"](" + b"".join(value(x) for x in v) + b"e"
        rows, columns = v.shape
        return (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85U\x01btR(K\x01"
                + b"K" + bytes([rows]) + b"M" + struct.pack("<H", columns) + b"\x86"
                + b"cnumpy\ndtype\n(U\x02u1K\0K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
                + b"\x89T" + struct.pack("<i", v.size) + v.tobytes() + b"tb")
    return b"\x80\x02}(" + b"".join(value(k) + value(v) for k, v in content.items()) + b"u."


def savemat(path, arrays, packed=True):
    """scipy.io.savemat without the time of day in the header."""
    scipy.io.savemat(path, arrays, do_compression=packed)
    data = path.read_bytes()
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(116) + data[116:])


def cifar():
    def batch(labels, key, python2=True):
        pixels = RNG.randint(0, 256, (len(labels), 3072)).astype(np.uint8)
        # Long runs, so that the archive stays small.
        pixels = np.repeat(pixels[:, ::64], 64, axis=1)
        content = {"data": pixels, key: labels, "batch_label": "a batch",
                   "filenames": [f"{i}.png" for i in range(len(labels))]}
        if key == "fine_labels":
            content["coarse_labels"] = [label // 5 for label in labels]
        if python2:
            return pickle_of_python2(content)
        return pickle.dumps({k.encode(): v for k, v in content.items()}, 4)
    ten = ROOT / "cifar10"
    members = [("cifar-10-batches-py", None), ("cifar-10-batches-py/readme.html", b"<p>"),
               ("cifar-10-batches-py/data_batch_2", batch([3, 9], "labels")),
               ("cifar-10-batches-py/data_batch_1", batch([0, 5, 7], "labels")),
               ("cifar-10-batches-py/batches.meta", pickle.dumps({}, 2)),
               ("cifar-10-batches-py/test_batch", batch([1, 2], "labels", False))]
    pack(ten / "cifar-10-python.tar.gz", members)
    hundred = ROOT / "cifar100"
    members = [("cifar-100-python/train", batch([99, 4, 50], "fine_labels")),
               ("cifar-100-python/test", batch([17, 0], "fine_labels"))]
    pack(hundred / "cifar-100-python.tar.gz", members)
    for folder, name, kind in [(ten, "cifar-10", Cifar10), (hundred, "cifar-100", Cifar100)]:
        for mode in ["train", "test"]:
            data = kind(str(folder / f"{name}-python.tar.gz"), mode, download=False)
            save(folder / f"{mode}.npz", [(np.array(im), l) for im, l in data], IMAGE_LABEL)


def jpeg(width, height):
    small = RNG.randint(0, 256, (3, 3, 3)).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(small).resize((width, height), Image.BICUBIC).save(out, "JPEG", quality=80)
    return out.getvalue()


def flowers():
    folder = ROOT / "flowers"
    members = [("jpg", None)]
    for i in [3, 1, 2, 4, 5, 6, 7]:
        members.append((f"jpg/image_{i:05d}.jpg", jpeg(8 + i, 12 - i)))
    pack(folder / "102flowers.tgz", members)
    savemat(folder / "imagelabels.mat", {"labels": np.array([[77, 1, 102, 5, 5, 60, 9]], np.uint8)})
    savemat(folder / "setid.mat",
            {"trnid": np.array([[2, 5]], np.uint16), "valid": np.array([[6]], np.uint16),
             "tstid": np.array([[7, 1, 4, 3]], np.uint16)})
    with tempfile.TemporaryDirectory() as work:  # the class unpacks beside the archive
        for name in ["102flowers.tgz", "imagelabels.mat", "setid.mat"]:
            shutil.copy(folder / name, work)
        for mode in ["train", "valid", "test"]:
            data = Flowers(f"{work}/102flowers.tgz", f"{work}/imagelabels.mat", f"{work}/setid.mat",
                           mode, download=False)
            save(folder / f"{mode}.npz", [(np.array(im), l) for im, l in data], IMAGE_LABEL)


def voc():
    folder = ROOT / "voc2012"
    top = "VOCdevkit/VOC2012/"
    names = {"2007_000032": (9, 7), "2007_000039": (6, 8), "2008_000008": (5, 5)}
    members = [("VOCdevkit", None), (top + "Annotations/2007_000032.xml", b"<x/>")]
    lists = {"trainval": list(names), "train": ["2007_000032", "2008_000008"], "val": ["2007_000039"]}
    for which, ids in lists.items():
        members.append((top + f"ImageSets/Segmentation/{which}.txt", "".join(i + "\n" for i in ids).encode()))
    for name, (width, height) in names.items():
        members.append((top + f"JPEGImages/{name}.jpg", jpeg(width, height)))
    for name, (width, height) in names.items():
        label = RNG.choice([0, 0, 3, 15, 20, 255], (height, width)).astype(np.uint8)
        image = Image.fromarray(label, "P")
        palette = [0, 0, 0, 128, 0, 0, 0, 128, 0] + [7] * 759
        image.putpalette(palette)
        out = io.BytesIO()
        image.save(out, "PNG")
        members.append((top + f"SegmentationClass/{name}.png", out.getvalue()))
    members.append((top + "JPEGImages/2009_000001.jpg", jpeg(4, 4)))
    pack(folder / "VOCtrainval_11-May-2012.tar", members, "w", tarfile.GNU_FORMAT)
    for mode in ["train", "valid", "test"]:
        data = VOC2012(str(folder / "VOCtrainval_11-May-2012.tar"), mode, download=False)
        save(folder / f"{mode}.npz", [(np.array(im), np.array(l)) for im, l in data],
             [("image", np.uint8), ("label", np.int64)])


def uci_housing():
    folder = ROOT / "uci_housing"
    folder.mkdir(parents=True, exist_ok=True)
    rows = RNG.rand(13, 14) * 10.0 ** RNG.randint(-1, 3, 14)
    rows[:, 3] = RNG.randint(0, 2, 13)
    text = ""
    for row in rows:  # as the original: two lines a record would also do
        text += " " + "  ".join(f"{v:.4f}" for v in row[:11]) + "\n  " + "  ".join(f"{v:.4f}" for v in row[11:]) + "\n"
    (folder / "housing.data").write_text(text)
    for mode in ["train", "test"]:
        data = UCIHousing(str(folder / "housing.data"), mode, download=False)
        save(folder / f"{mode}.npz", [data[i] for i in range(len(data))],
             [("feature", np.float32), ("target", np.float32)])


def movielens():
    folder = ROOT / "movielens"
    folder.mkdir(parents=True, exist_ok=True)
    movies = ["1::Toy Story (1995)::Animation|Children's|Comedy", "2::Jumanji (1995)::Adventure|Children's",
              "3::Story of Us, The (1999)::Comedy|Drama", "7::M (1931)::Crime|Film-Noir|Thriller",
              "12::Misérables, Les (1995)::Drama|Musical", "13::TOY (Le jouet) (1976)::Comedy"]
    users = ["1::F::1::10::48067", "2::M::56::16::70072", "3::M::25::15::55117", "4::F::45::7::02460"]
    ratings = []
    for i in range(40):
        movie = movies[RNG.randint(len(movies))].split("::")[0]
        ratings.append(f"{RNG.randint(1, 5)}::{movie}::{RNG.randint(1, 6)}::97830{i:04d}")
    path = folder / "ml-1m.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in [("", None), ("movies.dat", movies), ("ratings.dat", ratings), ("README", ["x"]), ("users.dat", users)]:
            info = zipfile.ZipInfo("ml-1m/" + name)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "" if lines is None else ("\n".join(lines) + "\n").encode("latin-1"))
    # In the order of the file.
    words, categories = {}, {}
    for line in movies:
        _, title, kinds = line.split("::")
        for word in title[:title.rindex("(")].split():
            words.setdefault(word.lower(), len(words))
        for kind in kinds.split("|"):
            categories.setdefault(kind, len(categories))
    fields = [(n, np.int64) for n in ["user_id", "gender_id", "age_id", "job_id", "movie_id", "category", "title"]]
    fields.append(("rating", np.float32))
    for case, mode, ratio, seed in [("train", "train", 0.1, 0), ("test", "test", 0.1, 0), ("test_seed", "test", 0.4, 11)]:
        data = Movielens(str(path), mode, ratio, seed, download=False)
        word_of = {i: w for w, i in data.movie_title_dict.items()}
        kind_of = {i: c for c, i in data.categories_dict.items()}
        records = []
        for i in range(len(data)):
            r = list(data[i])
            r[5] = np.array([categories[kind_of[int(c)]] for c in r[5]])
            r[6] = np.array([words[word_of[int(w)]] for w in r[6]])
            records.append(r)
        save(folder / f"{case}.npz", records, fields)


def imdb():
    folder = ROOT / "imdb"
    text = ["A great, great film!<br />Truly great.\n", "It's bad; a BAD film\r\n\n", "great acting... a film",
            "bad \x0b\x1c caf\u00e9 film", "the the the plot -- bad", "a  film, a plot, a scene", "", "un-great"]
    members = [("aclImdb", None), ("aclImdb/README", b"x"), ("aclImdb/imdb.vocab", b"great")]
    i = 0
    for mode in ["test", "train"]:
        for kind in ["neg", "pos", "unsup"]:
            members.append((f"aclImdb/{mode}/{kind}", None))
            for k in range(3):
                members.append((f"aclImdb/{mode}/{kind}/{9 - k}_{k}.txt", text[i % len(text)].encode()))
                i += 1
        members.append((f"aclImdb/{mode}/urls_neg.txt", b"great great great"))
    pack(folder / "aclImdb_v1.tar.gz", members)
    for case, mode, cutoff in [("train", "train", 1), ("test", "test", 1), ("test_cutoff", "test", 3)]:
        data = Imdb(str(folder / "aclImdb_v1.tar.gz"), mode, cutoff, download=False)
        save(folder / f"{case}.npz", [data[k] for k in range(len(data))], [("doc", np.int64), ("label", np.int64)])


def imikolov():
    folder = ROOT / "imikolov"
    texts = {"train": " no it was n't black monday \n but while the <unk> stock exchange did n't fall\n it was\n\n a b c d e f\n",
             "valid": " consumers may want to move their <unk> a little closer\n it was the n't\n",
             "test": " no it was n't the unknown stock\n black\n"}
    members = [("./simple-examples/", None), ("./simple-examples/README", b"x")]
    for which, text in texts.items():
        members.append((f"./simple-examples/data/ptb.{which}.txt", text.encode()))
    pack(folder / "simple-examples.tgz", members)
    for case, kind, window, mode, freq in [
            ("ngram_train", "NGRAM", 3, "train", 1), ("ngram_test", "NGRAM", 5, "test", 2),
            ("seq_train", "SEQ", -1, "train", 1), ("seq_window", "SEQ", 6, "train", 1),
            ("seq_test", "SEQ", -1, "test", 2)]:
        data = Imikolov(str(folder / "simple-examples.tgz"), kind, window, mode, freq, download=False)
        records = [data[i] for i in range(len(data))]
        if kind == "NGRAM":
            save(folder / f"{case}.npz", [(np.stack(r[:-1]), r[-1]) for r in records],
                 [("words", np.int64), ("label", np.int64)])
        else:
            save(folder / f"{case}.npz", records, [("src", np.int64), ("trg", np.int64)])


WMT = [("src_ids", np.int64), ("trg_ids", np.int64), ("trg_ids_next", np.int64)]


def wmt14():
    folder = ROOT / "wmt14"
    source = ["<s>", "<e>", "<unk>", "the", "cat", "sat", "dog", "a"]
    target = ["<s>", "<e>", "<unk>", "le", "chat", "chien", "un", "est"]
    train = ["the cat sat\tle chat est", "no tab here", "a dog\u3000cat\tun\u00a0chien ", "two\ttabs\there",
             "the " * 79 + "\tle", "the " * 78 + "\tle", "a\t" + "un " * 81, "a\t" + "un " * 80, "\tle chien"]
    members = [("wmt14", None), ("wmt14/src.dict", "\n".join(source).encode() + b"\n"),
               ("wmt14/trg.dict", "\n".join(target).encode()),
               ("wmt14/train", None), ("wmt14/train/train", "\n".join(train[:5]).encode() + b"\n"),
               ("wmt14/test", None), ("wmt14/test/test", b"a cat\tun chat\n"),
               ("wmt14/gen", None), ("wmt14/gen/gen", b"the dog\tle chien\nsat\test\n"),
               ("wmt14/more/train/train", "\n".join(train[5:]).encode() + b"\n")]
    pack(folder / "wmt14.tgz", members)
    for case, mode, size in [("train", "train", 8), ("train_small", "train", 5), ("test", "test", 30), ("gen", "gen", 8)]:
        data = WMT14(str(folder / "wmt14.tgz"), mode, size, download=False)
        save(folder / f"{case}.npz", [data[i] for i in range(len(data))], WMT)


class OwnWords(WMT16):
    """WMT16 makes both dictionaries of the source language's words; this makes
    the target's of the target's."""

    def _build_dict(self, dict_path, dict_size, lang):
        source, self.lang = self.lang, lang
        super()._build_dict(dict_path, dict_size, lang)
        self.lang = source


def wmt16():
    folder = ROOT / "wmt16"
    train = ["a man in a hat .\tein mann mit hut .", "two men , a dog\tzwei m\u00e4nner , ein hund", "no tab",
             "a dog\tein hund .", "the man\tder mann\n"]
    members = [("wmt16", None), ("wmt16/train", "\n".join(train).encode()),
               ("wmt16/val", b"a hat\tein hut\n\n"), ("wmt16/test", b"the dog , two hats\tder hund\na man\tein mann\n")]
    pack(folder / "wmt16.tar.gz", members)
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/wmt16")
        paddle.dataset.common.DATA_HOME = home
        for case, kind, mode, src, trg, lang in [
                ("train", WMT16, "train", 20, 20, "en"), ("train_small", WMT16, "train", 6, 5, "en"),
                ("val_de", WMT16, "val", 9, 9, "de"), ("test", WMT16, "test", 10, 11, "en"),
                ("own_train", OwnWords, "train", 20, 9, "en"), ("own_val_de", OwnWords, "val", 9, 9, "de")]:
            shutil.rmtree(home + "/wmt16")
            os.makedirs(home + "/wmt16")
            data = kind(str(folder / "wmt16.tar.gz"), mode, src, trg, lang, download=False)
            save(folder / f"{case}.npz", [data[i] for i in range(len(data))], WMT)


def conll05st():
    folder = ROOT / "conll05st"
    sentences = [
        (["The", "cat", "sat", "and", "slept", "."],
         [("-", "(A0*", "(A0*"), ("-", "*)", "*)"), ("sit", "(V*)", "*"), ("-", "*", "*"), ("sleep", "*", "(V*)"), ("-", "*", "*")]),
        (["No", "verb", "here"], [("-",), ("-",), ("-",)]),
        (["Eat", "two", "red", "apples", "now"],
         [("eat", "(V*)"), ("-", "(A1*"), ("-", "*"), ("-", "*)"), ("-", "(AM-TMP*)")]),
        (["Go"], [("go", "(V*)")]),
    ]
    words, props = "", ""
    for tokens, labels in sentences:
        words += "".join(t + "\n" for t in tokens) + "\n"
        props += "".join("\t".join(l) + "\n" for l in labels) + "\n"
    top = "conll05st-release/test.wsj/"
    members = [("conll05st-release", None),
               (top + "words/test.wsj.words.gz", gzip.compress(words.encode(), mtime=0)),
               (top + "props/test.wsj.props.gz", gzip.compress(props.encode(), mtime=0))]
    pack(folder / "conll05st-tests.tar.gz", members)
    files = {"wordDict.txt": ["<unk>", "bos", "eos", "The", "cat", "sat", "and", ".", "Eat", "two", "red", "Go"],
             "verbDict.txt": ["be", "sit", "eat", "go", "sleep"],
             "targetDict.txt": ["B-A0", "I-A0", "B-A1", "I-A1", "B-V", "I-V", "O", "B-AM-TMP"]}
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "emb").write_bytes(b"")
    data = Conll05st(str(folder / "conll05st-tests.tar.gz"), str(folder / "wordDict.txt"), str(folder / "verbDict.txt"),
                     str(folder / "targetDict.txt"), str(folder / "emb"), download=False)
    (folder / "emb").unlink()
    tags = []
    for line in files["targetDict.txt"]:
        if line[:2] in ("B-", "I-") and line[2:] not in tags:
            tags.append(line[2:])
    ours = {"O": 2 * len(tags)}
    for i, tag in enumerate(tags):
        ours["B-" + tag], ours["I-" + tag] = 2 * i, 2 * i + 1
    label_of = {i: l for l, i in data.label_dict.items()}
    names = ["word_idx", "ctx_n2_idx", "ctx_n1_idx", "ctx_0_idx", "ctx_p1_idx", "ctx_p2_idx", "pred_idx", "mark", "label"]
    records = []
    for i in range(len(data)):
        r = list(data[i])
        r[8] = np.array([ours[label_of[int(l)]] for l in r[8]])
        records.append(r)
    save(folder / "test.npz", records, [(n, np.int64) for n in names])


def formats():
    """tar and .mat files as different programs write them."""
    folder = ROOT / "formats"
    folder.mkdir(parents=True, exist_ok=True)
    long_name = "long/" + "n" * 120 + "/file.txt"
    members = [("a.txt", b"first"), ("./folder/", None), ("folder/empty", b""), (long_name, b"y" * 700)]
    pack(folder / "gnu.tar", members, "w", tarfile.GNU_FORMAT)
    pack(folder / "pax.tar.gz", members, "w:gz", tarfile.PAX_FORMAT)
    pack(folder / "ustar.tar", members[:3] + [("p" * 90 + "/" + "q" * 90, b"z")], "w")
    with tempfile.TemporaryDirectory() as work:  # GNU tar's own
        pathlib.Path(work, "a.txt").write_text("first")
        os.symlink("a.txt", f"{work}/link")
        os.link(f"{work}/a.txt", f"{work}/twin")
        subprocess.run(["tar", "--format=v7", "--owner=0", "--group=0", "--mtime=@0", "-cf", folder / "v7.tar",
                        "./a.txt", "./link", "./twin"], cwd=work, check=True)
    arrays = {"bytes": np.arange(6, dtype=np.uint8).reshape(2, 3), "words": np.array([[300, 7]], np.uint16),
              "doubles": np.array([[1.5], [-2e300]]), "signed": np.array([[-5, 5]], np.int64), "text": "left out",
              "cube": np.arange(24.0).reshape(2, 3, 4), "pair": np.array([[1 + 2j]])}
    savemat(folder / "plain.mat", arrays, packed=False)
    savemat(folder / "packed.mat", arrays)
    matrix = (struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 1, 3) + struct.pack(">HH4s", 1, 1, b"x") +
              struct.pack(">II", 4, 6) + struct.pack(">HHH", 1, 2, 500) + b"\0\0")  # doubles kept as uint16
    (folder / "big_endian.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H2s", 0x100, b"MI") +
                                            struct.pack(">II", 14, len(matrix)) + matrix)
    big = scipy.io.loadmat(folder / "big_endian.mat")["x"]
    assert (big == [[1, 2, 500]]).all(), big


if __name__ == "__main__":
    for make in [cifar, flowers, voc, uci_housing, movielens, imdb, imikolov, wmt14, wmt16, conll05st, formats]:
        make()
