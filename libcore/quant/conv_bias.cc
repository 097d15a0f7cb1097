// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/conv_bias.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace pd {
namespace {

class Mover {
 public:
  explicit Mover(InferenceModel* model)
      : model_(model), block_(model->program.global()) {}

  int Run() {
    int moved = 0;
    for (OpDesc& conv : block_.ops)
      if (conv.type == "conv2d" || conv.type == "depthwise_conv2d" ||
          conv.type == "conv2d_transpose")
        moved += Move(&conv);
    std::vector<OpDesc> kept;
    for (OpDesc& op : block_.ops)
      if (!op.type.empty()) kept.push_back(std::move(op));
    block_.ops = std::move(kept);
    return moved;
  }

 private:
  int Move(OpDesc* conv) {
    const std::string out = conv->Out("Output");
    const VarDesc* var = block_.FindVar(out);
    OpDesc* add = OnlyReader(out);
    if (!conv->In("Bias").empty() || add == nullptr || var == nullptr ||
        conv->Attr<std::string>("data_format") == "NHWC" ||
        add->type != "elementwise_add" || add->In("X") != out ||
        var->shape.size() != 4)
      return 0;
    const std::string bias = BiasOf(*add, var->shape[1]);
    if (bias.empty()) return 0;
    conv->SetInput("Bias", {bias});
    conv->SetOutput("Output", {add->Out("Out")});
    const std::string added = add->In("Y");
    *add = OpDesc();
    // A reshape of the bias that nobody reads any more.
    for (OpDesc& op : block_.ops)
      if (added != bias && op.type == "reshape2" && op.Out("Out") == added &&
          CountReaders(added) == 0)
        op = OpDesc();
    return 1;
  }

  int CountReaders(const std::string& name) const {
    int readers = 0;
    for (const OpDesc& op : block_.ops)
      for (const auto& [slot, names] : op.inputs)
        readers +=
            static_cast<int>(std::count(names.begin(), names.end(), name));
    return readers;
  }

  OpDesc* OnlyReader(const std::string& name) {
    OpDesc* reader = nullptr;
    const auto& fetches = model_->names.fetches;
    int readers =
        static_cast<int>(std::count(fetches.begin(), fetches.end(), name));
    for (OpDesc& op : block_.ops)
      for (const auto& [slot, names] : op.inputs)
        for (const std::string& input : names) {
          if (input != name) continue;
          reader = &op;
          ++readers;
        }
    return readers == 1 ? reader : nullptr;
  }

  // The parameter [channels] that the op adds; "" when it adds another thing.
  std::string BiasOf(const OpDesc& add, int64_t channels) const {
    const auto is_bias = [&](const std::string& name) {
      const auto it = model_->params.find(name);
      return it != model_->params.end() && it->second.shape.size() == 1 &&
             it->second.size() == channels;
    };
    const std::string& y = add.In("Y");
    const int32_t axis = add.Attr<int32_t>("axis");
    if (is_bias(y)) return axis == 1 ? y : "";
    for (const OpDesc& op : block_.ops) {
      if (op.type != "reshape2" || op.Out("Out") != y) continue;
      const VarDesc* shaped = block_.FindVar(y);
      const bool fits = shaped != nullptr &&
                        shaped->shape == Shape{1, channels, 1, 1} &&
                        (axis == -1 || axis == 0);
      return fits && is_bias(op.In("X")) ? op.In("X") : "";
    }
    return "";
  }

  InferenceModel* model_;
  BlockDesc& block_;
};

}  // namespace

int MoveConvBiases(InferenceModel* model) { return Mover(model).Run(); }

}  // namespace pd
