#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shard_goldens.py GOLDENS: testdata/fleet/dygraph/{embedding,sync_batch_norm}*
from trainings of PaddlePaddle 2.6.2 in one process with whole batches
(GOLDENS/dygraph/dygraph_batchnorm_dp/single: a batch norm of the whole batch;
GOLDENS/train/dp_embedding_sparse/single: batches and initial parameters)."""
import pickle
import sys

import numpy as np

OUT = "testdata/fleet/dygraph"
NAMES = {
    "embedding_0.w_0": "table.weight",
    "linear_1.w_0": "a.weight", "linear_1.b_0": "a.bias",
    "linear_0.w_0": "b.weight", "linear_0.b_0": "b.bias",
}


def parameters(path):
    with open(path, "rb") as f:
        state = pickle.load(f)
    return {k: np.asarray(v) for k, v in state.items() if not k.startswith("StructuredToParameterName")}


def named(path):
    return {NAMES[k]: v for k, v in parameters(path).items() if k in NAMES}


def main(goldens):
    table = f"{goldens}/train/dp_embedding_sparse/single"
    batches = np.load(f"{table}/batches.npz")
    flat = {k: batches[k].reshape(-1, *batches[k].shape[2:]) for k in ("ids", "y")}
    np.savez(f"{OUT}/embedding.npz", x=flat["ids"], label=flat["y"])
    with open(f"{OUT}/embedding_init.pdparams", "wb") as f:
        pickle.dump(named(f"{table}/init.pdparams"), f, protocol=2)
    norm = f"{goldens}/dygraph/dygraph_batchnorm_dp/single"
    np.savez(f"{OUT}/sync_batch_norm_final.npz", **parameters(f"{norm}/final.pdparams"))


if __name__ == "__main__":
    main(sys.argv[1])
