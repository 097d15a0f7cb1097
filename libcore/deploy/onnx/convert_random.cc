// SPDX-License-Identifier: Apache-2.0
// Random numbers, of the shape of a tensor. ONNX Runtime draws others than
// PaddlePaddle from the same seed; without a seed each run draws new ones.
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

OnnxAttrs WithSeed(OnnxOp* op, OnnxAttrs attrs) {
  if (const int64_t seed = op->Int("seed"); seed != 0)
    attrs.emplace_back("seed", static_cast<float>(seed));
  return attrs;
}

void GiveNormal(OnnxOp* op, const char* slot, const std::string& like) {
  op->Give(slot, "RandomNormalLike", {like},
           WithSeed(op, {{"mean", static_cast<float>(op->Float("mean"))},
                         {"scale", static_cast<float>(op->Float("std"))}}));
}

void GiveUniform(OnnxOp* op, const std::string& like) {
  op->Give("Out", "RandomUniformLike", {like},
           WithSeed(op, {{"low", static_cast<float>(op->Float("min"))},
                         {"high", static_cast<float>(op->Float("max"))}}));
}

// Zeros of the output's type.
std::string Zeros(OnnxOp* op, const std::string& shape) {
  return op->Emit("Expand", {op->Const(0, op->OutVar("Out").dtype), shape});
}

void ConvertGaussian(OnnxOp* op) {
  GiveNormal(op, "Out", Zeros(op, op->RequestedShape("ShapeTensorList")));
}
void ConvertUniform(OnnxOp* op) {
  GiveUniform(op, Zeros(op, op->RequestedShape("ShapeTensorList")));
}
void ConvertGaussianBatchLike(OnnxOp* op) {
  GiveNormal(op, "Out", Zeros(op, op->BatchLikeShape()));
}
void ConvertUniformBatchLike(OnnxOp* op) {
  GiveUniform(op, Zeros(op, op->BatchLikeShape()));
}
void ConvertGaussianInPlace(OnnxOp* op) { GiveNormal(op, "out", op->In("x")); }
void ConvertUniformInPlace(OnnxOp* op) { GiveUniform(op, op->In("X")); }

}  // namespace

OnnxConverters RandomConverters() {
  return {
      {"gaussian_inplace", ConvertGaussianInPlace},
      {"gaussian_random", ConvertGaussian},
      {"gaussian_random_batch_size_like", ConvertGaussianBatchLike},
      {"uniform_random", ConvertUniform},
      {"uniform_random_batch_size_like", ConvertUniformBatchLike},
      {"uniform_random_inplace", ConvertUniformInPlace},
  };
}

}  // namespace pd
