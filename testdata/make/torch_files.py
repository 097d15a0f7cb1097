#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes testdata/formats/torch: files as torch.save writes them, and the arrays
that are in them. PyTorch is not needed: torch.save is Python's own pickler with
protocol 2 and a persistent id for each storage, over classes that are given
PyTorch's names here, and a zip of stored entries whose contents are aligned to
64 bytes by an extra field "FB" (torch/serialization.py, torch/_utils.py and
caffe2/serialize/inline_container.cc of PyTorch 2.6). Needs numpy alone.

    testdata/make/torch_files.py
"""
import io
import pathlib
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "formats" / "torch"

# PyTorch's modules, as far as its pickles name them.
torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})
CLASSES = {}
for name, dtype in {"FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2",
                    "BFloat16Storage": "u2", "LongStorage": "i8", "IntStorage": "i4",
                    "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1",
                    "BoolStorage": "?", "ComplexFloatStorage": "c8"}.items():
    cls = type(name, (), {"__module__": "torch"})
    setattr(torch, name, cls)
    CLASSES[name] = (cls, np.dtype(dtype))
for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
    function = eval("lambda *args: None")
    function.__module__, function.__name__, function.__qualname__ = "torch._utils", name, name
    setattr(utils, name, function)


class Storage:
    def __init__(self, kind, values):
        self.kind, self.values = kind, np.asarray(values, CLASSES[kind][1]).reshape(-1)


class Tensor:
    """A window on a storage; strides in elements."""

    def __init__(self, storage, shape, strides, offset=0):
        self.storage, self.shape, self.strides, self.offset = storage, shape, strides, offset

    def __reduce_ex__(self, protocol):
        return utils._rebuild_tensor_v2, (self.storage, self.offset, tuple(self.shape),
                                          tuple(self.strides), False, OrderedDict())

    def numpy(self):
        values = self.storage.values
        size = values.itemsize
        return np.lib.stride_tricks.as_strided(
            values[self.offset:], self.shape, [s * size for s in self.strides]).copy()


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce_ex__(self, protocol):
        return utils._rebuild_parameter, (self.tensor, True, OrderedDict())

    def numpy(self):
        return self.tensor.numpy()


def tensor(kind, values):
    values = np.asarray(values)
    strides = [int(np.prod(values.shape[i + 1:])) for i in range(values.ndim)]
    return Tensor(Storage(kind, values), values.shape, strides)


class Pickler(pickle._Pickler):
    """Names storages by keys, as torch.save does; `legacy` ids have a sixth item."""

    def __init__(self, file, legacy):
        super().__init__(file, protocol=2)
        self.legacy, self.storages, self.keys = legacy, [], {}

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        if id(obj) not in self.keys:
            self.keys[id(obj)] = str(len(self.storages))
            self.storages.append(obj)
        return ("storage", CLASSES[obj.kind][0], self.keys[id(obj)], "cpu",
                len(obj.values)) + ((None,) if self.legacy else ())


def pickled(obj, legacy=False):
    out = io.BytesIO()
    pickler = Pickler(out, legacy)
    pickler.dump(obj)
    return out.getvalue(), pickler.storages


def write_zip(name, entries, folder):
    """Stored entries in this order, each aligned to 64 bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for entry, content in entries:
            info = zipfile.ZipInfo(f"{folder}/{entry}", (1980, 1, 1, 0, 0, 0))
            start = out.tell() + 30 + len(info.filename) + 4
            padding = -start % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            archive.writestr(info, content)
    (FOLDER / name).write_bytes(out.getvalue())


def save(name, obj, big=False, change=lambda data: data, more=()):
    data, storages = pickled(obj)
    swap = (lambda v: v.byteswap()) if big else (lambda v: v)
    entries = [("data.pkl", change(data)), (".format_version", b"1"),
               (".storage_alignment", b"64"), ("byteorder", b"big" if big else b"little")]
    entries += [(f"data/{i}", swap(s.values).tobytes()) for i, s in enumerate(storages)]
    entries += [("version", b"3\n"), (".data/serialization_id", b"0" * 40), *more]
    write_zip(name, entries, name.split(".")[0])


def save_legacy(name, obj):
    data, storages = pickled(obj, legacy=True)
    info = dict(protocol_version=1001, little_endian=True,
                type_sizes=dict(short=2, int=4, long=4))
    parts = [pickle.dumps(0x1950a86a20f9469cfc6c, 2), pickle.dumps(1001, 2),
             pickle.dumps(info, 2), data,
             pickle.dumps([str(i) for i in range(len(storages))], 2)]
    for storage in storages:
        parts += [struct.pack("<q", len(storage.values)), storage.values.tobytes()]
    (FOLDER / name).write_bytes(b"".join(parts))


def state_dict(items):
    result = OrderedDict(items)
    result._metadata = OrderedDict([("", {"version": 1})])
    return result


def main():
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(21)
    shared = Storage("FloatStorage", np.arange(24))
    tied = tensor("FloatStorage", rng.standard_normal((5, 3)))
    kinds = {kind: tensor(kind, np.arange(6).reshape(2, 3) % (2 if kind == "BoolStorage" else 7))
             for kind in CLASSES if kind != "FloatStorage"}
    windows = state_dict([
        ("fc.weight", tensor("FloatStorage", rng.standard_normal((4, 3)))),
        ("fc.bias", tensor("FloatStorage", rng.standard_normal(4))),
        ("tied.0", tied), ("tied.1", Parameter(tied)),
        ("whole", Tensor(shared, (4, 6), (6, 1))),
        ("transposed", Tensor(shared, (6, 4), (1, 6))),
        ("slice", Tensor(shared, (2, 3), (6, 1), 8)),
        ("step", Tensor(shared, (2, 2, 2), (12, 6, 2), 1)),
        ("expanded", Tensor(shared, (3, 2), (0, 1), 22)),
        ("channels_last", Tensor(shared, (1, 3, 2, 4), (24, 1, 12, 3))),
        ("scalar", tensor("LongStorage", np.array(7))),
        ("empty", Tensor(Storage("FloatStorage", []), (0, 3), (3, 1))),
    ] + [(f"kinds.{kind[:-7].lower()}", value) for kind, value in kinds.items()])
    arrays = {name: value.numpy() for name, value in windows.items()}
    np.savez(FOLDER / "state_dict.npz", **arrays)
    save("state_dict.pt", windows)
    save("big_endian.pt", windows, big=True)
    save_legacy("legacy.pth", windows)

    # A small network, in the types and under the names of PyTorch.
    half = lambda *shape: tensor("HalfStorage", rng.standard_normal(shape) / 8)
    network = state_dict([
        ("module.body.weight", half(4, 784)), ("module.body.bias", half(4)),
        ("module.bn.weight", half(4)), ("module.bn.bias", half(4)),
        ("module.bn.running_mean", tensor("FloatStorage", rng.standard_normal(4))),
        ("module.bn.running_var", tensor("FloatStorage", rng.random(4) + 0.5)),
        ("module.bn.num_batches_tracked", tensor("LongStorage", np.array(12))),
        ("module.mix.weight", half(4, 4)), ("module.mix.bias", half(4)),
        ("module.fc.weight", half(7, 4)), ("module.fc.bias", half(7))])
    save("checkpoint.pth", {"epoch": 3, "model": network, "best": 0.5,
                            "optimizer": {"state": {0: {"step": 12}}, "param_groups": []}})

    # Small ones to be damaged, and those that must be refused.
    small = {"w": Tensor(shared, (2, 2), (1, 2), 3), "n": tensor("LongStorage", [1, 2])}
    save("small.pt", small)
    save_legacy("small.pth", small)
    save("beyond.pt", {"w": Tensor(shared, (4, 6), (6, 1), 1)})
    save("negative.pt", {"w": Tensor(shared, (2, 3), (-3, 1), 6)})
    save("overflow.pt", {"w": Tensor(shared, (2**40, 2**40), (0, 0))})
    save("stride.pt", {"w": Tensor(shared, (3, 2), (2**62, 2**62))})
    save("expanded.pt", {"w": Tensor(shared, (2**30,), (0,))})
    save("short.pt", {"w": tensor("FloatStorage", [1, 2, 3])},
         change=lambda data: data.replace(b"K\x03tq", b"K\x04tq"))
    save("call.pt", {"w": pickle.loads}, more=())
    save("script.pt", {"w": tensor("FloatStorage", [1])}, more=[("constants.pkl", b"\x80\x02).")])


if __name__ == "__main__":
    main()
