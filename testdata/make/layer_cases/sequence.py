# SPDX-License-Identifier: Apache-2.0
"""Beams, lengths, sampled classes: rows of testdata/make/layer_goldens.py."""
from op_cases import A

ids = [[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]]
parents = [[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]]
none = dict(by="", train=False)
CASES = {
    "gather_tree": ("gather_tree {}", "F.gather_tree", dict(x=A(ids), y=A(parents)), none),
    "gather_tree_int32": ("gather_tree {}", "F.gather_tree", dict(x=A(ids, "int32"), y=A(parents, "int32")), none),
    "sequence_mask": ("sequence_mask { maxlen: 4 }", "lambda x: F.sequence_mask(x, 4)", dict(x=A([3, 0, 5])), none),
    "sequence_mask_float": ('sequence_mask { maxlen: 3 dtype: float32 }', "lambda x: F.sequence_mask(x, 3, 'float32')",
                            dict(x=A([[3, 1], [0, 2]], "int32")), none),
    "sequence_mask_longest": ("sequence_mask { dtype: int32 }", "lambda x: F.sequence_mask(x, dtype='int32')", dict(x=A([3, 0, 5])), none),
    # As many classes as labels: nothing is left to chance.
    "class_center_sample": ("class_center_sample { num_classes: 20 num_samples: 3 }", "lambda x: F.class_center_sample(x, 20, 3)",
                            dict(x=A([11, 5, 1, 3, 12, 2, 15, 19, 18, 19])), dict(outputs=["l", "l:sampled_class_center"], **none)),
    "class_center_sample_all": ("class_center_sample { num_classes: 4 num_samples: 4 }", "lambda x: F.class_center_sample(x, 4, 4)[0]",
                                dict(x=A([3, 0, 1, 3], "int32")), none),
}
