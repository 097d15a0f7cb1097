#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks PaddlePaddle's own predictor for the answers that tests of the prediction API expect.

    inference_goldens.py FOLDER        with paddlepaddle 2.6.2; FOLDER is testdata/inference

Each model of the folder is run once on inputs made here; NAME-feed.npz and NAME-expect.npz are written.
"""
import os
import sys

import numpy as np
import paddle.inference as infer


def run(config, feeds, lods):
    config.disable_glog_info()
    predictor = infer.create_predictor(config)
    for name in predictor.get_input_names():
        handle = predictor.get_input_handle(name)
        handle.reshape(feeds[name].shape)
        handle.copy_from_cpu(feeds[name])
        if name in lods:
            handle.set_lod(lods[name])
    predictor.run()
    return {name: predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()}


def main():
    folder = sys.argv[1]
    numbers = np.random.RandomState(7)
    words = [[0, 3, 5, 9]]
    cases = {
        "image": ({"data": numbers.rand(2, 3, 17, 19).astype("float32")}, {}),
        "word2vec": ({name: np.array([[1], [2], [3], [4]], dtype="int64") for name in ("firstw", "secondw", "thirdw", "forthw")}, {}),
        "ner": ({name: numbers.randint(0, 50, (9, 1)).astype("int64") for name in ("word", "mention")}, {"word": words, "mention": words}),
    }
    for name, (feeds, lods) in cases.items():
        path = os.path.join(folder, name)
        joint = os.path.join(path, "inference.pdmodel")
        config = infer.Config(joint, joint[:-5] + "iparams") if os.path.exists(joint) else infer.Config(path)
        answers = run(config, feeds, lods)
        np.savez(os.path.join(folder, name + "-feed.npz"), **feeds)
        np.savez(os.path.join(folder, name + "-expect.npz"), **answers)
        print(name, {key: value.shape for key, value in answers.items()})


if __name__ == "__main__":
    main()
