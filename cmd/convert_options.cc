// SPDX-License-Identifier: Apache-2.0
#include "cmd/convert_options.h"

namespace pd {
namespace {

Manual ConvertManual() {
  Manual m;
  m.name = "pd-convert";
  m.summary = "say what is in a model or data file";
  m.synopsis = {"--inspect FILE [--format text|json] [-v]"};
  m.description = {
      "Prints what FILE is, who wrote it, and every tensor in it with shape, "
      "element type, bytes, smallest and largest value, mean, and the numbers "
      "of NaN and infinite elements, which the other three leave out. FILE is "
      "read to its end, so a damaged one is an error.",
      "FILE is a `.pdmodel` (with the parameters beside it, where there are), "
      "`.pdiparams` (with names where its `.pdmodel` is beside it), "
      "`.pdparams`, `.pdopt` or another pickle of PaddlePaddle, a tensor or "
      "SelectedRows file, `.npy`, `.npz`, an idx file (also gzip), a PNG or "
      "JPEG, a folder with `__model__`, a run directory of `pd-train` or the "
      "folder of one of its checkpoints. The first bytes decide, not the "
      "name. Of ONNX, safetensors, HDF5, tar, TensorBoard, zip, JSON and "
      "other text files only the kind is said.",
      "Of a program it also prints inputs, outputs, the number of ops by type, "
      "and FLOPs: two for each multiply-add of convolutions and matrix "
      "products, which are `conv2d`, `depthwise_conv2d`, `matmul`, "
      "`matmul_v2`, `mul`, `fc`, their fused and transposed forms and their "
      "gradients. Other ops count nothing, and the batch is 1 where the "
      "program leaves it open. Where another extent is open the number is "
      "unknown; `pd-export --input` sets it. With `-v` the program follows as "
      "text.",
      "With `--format json` one object is printed. It has `kind`, `content`, "
      "`producer`, `details` and `tensors`, a list of objects with `name`, "
      "`shape`, `dtype`, `bytes`, `min`, `max`, `mean`, `nan` and `inf`; for "
      "models `inputs` and `outputs`, lists of `name`, `shape`, `dtype`, "
      "`ops`, "
      "`flops` and `flops_by_op`; where they are not empty `entries` of a "
      "pickle that are no tensors, and `notes`. What is not known is null."};
  m.examples = {
      {"What is in a model",
       "pd-convert --inspect testdata/formats/models/inference.pdmodel"},
      {"The model as text",
       "pd-convert -v --inspect testdata/formats/models/inference.pdmodel | "
       "grep batch_norm"},
      {"Names of the parameters in a training checkpoint",
       "pd-convert --inspect testdata/formats/pickles/model.p4.pdparams "
       "--format json | grep -o '\"name\":\"[^\"]*\"'"},
      {"The range of the pixels of a data set",
       "pd-convert --inspect testdata/mnist/t10k-images-idx3-ubyte.gz"},
      {"A damaged file is refused with a reason",
       "pd-convert --inspect testdata/formats/malformed/npz_cut.npz", 3}};
  m.see_also = {"pd-eval 1", "pd-export 1", "pd-train 1"};
  return m;
}

void BindConvert(ConvertOptions* o, OptionTable* table) {
  table->Group("Inspection");
  table->Text({"--inspect", "FILE", "says what FILE is and what it holds"},
              &o->inspect);
  table->Require("--inspect");
}

}  // namespace

Tool ConvertTool(ConvertOptions* options) {
  Tool tool;
  tool.manual = ConvertManual();
  tool.common = &options->common;
  tool.bind = [options](OptionTable* table) { BindConvert(options, table); };
  return tool;
}

}  // namespace pd
