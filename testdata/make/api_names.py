#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints testdata/api/paddle_api.txt: the public names of PaddlePaddle 2.6.2 (needs paddlepaddle 2.6.2).

    testdata/make/api_names.py > testdata/api/paddle_api.txt
"""
import importlib

SPACES = ("nn nn.functional nn.initializer optimizer optimizer.lr regularizer metric vision.models vision.datasets "
          "vision.transforms text io").split()
# Packages of functions; which of their names 2.3 has is not marked.
FUNCTIONS = ("linalg fft signal sparse sparse.nn sparse.nn.functional distribution vision.ops geometric incubate "
             "incubate.nn incubate.nn.functional incubate.autograd incubate.optimizer incubate.optimizer.functional "
             "autograd distributed").split()
# Names that came after 2.3, by PaddlePaddle's release notes of 2.4 to 2.6 and the __all__ of paddle.nn as it was
# when 2.3 was released.
LATER = {
    "nn": "ChannelShuffle CosineEmbeddingLoss GLU GaussianNLLLoss MultiLabelSoftMarginLoss MultiMarginLoss PixelUnshuffle "
          "PoissonNLLLoss RNNTLoss RReLU SoftMarginLoss Softmax2D TripletMarginLoss TripletMarginWithDistanceLoss Unflatten",
    "nn.functional": "channel_shuffle cosine_embedding_loss gaussian_nll_loss hardtanh_ leaky_relu_ "
                     "multi_label_soft_margin_loss multi_margin_loss pairwise_distance pixel_unshuffle poisson_nll_loss "
                     "rnnt_loss rrelu scaled_dot_product_attention soft_margin_loss thresholded_relu_ triplet_margin_loss "
                     "triplet_margin_with_distance_loss",
    "optimizer": "LBFGS",
    "optimizer.lr": "CosineAnnealingWarmRestarts CyclicLR LinearLR OneCycleLR",
    "vision.transforms": "RandomAffine RandomErasing RandomPerspective affine erase perspective",
    "io": "ConcatDataset SubsetRandomSampler",
}


def main():
    print("# Public names of PaddlePaddle 2.6.2, from each package's __all__ by testdata/make/api_names.py.\n"
          "# \"later\" marks those of the first packages, down to paddle.io, that 2.3 does not have.")
    for space in SPACES:
        names = set(importlib.import_module("paddle." + space).__all__)
        later = set(LATER.get(space, "").split())
        assert later <= names, later - names
        shown = "text.datasets" if space == "text" else space
        for name in sorted(names):
            is_dataset = space != "text" or not name.lower().startswith("viterbi")
            print(f"paddle.{shown if is_dataset else space} {name}" + (" later" if name in later else ""))
    for space in ["paddle"] + ["paddle." + space for space in FUNCTIONS]:
        for name in sorted(set(importlib.import_module(space).__all__)):
            print(space, name)


main()
