// SPDX-License-Identifier: Apache-2.0
//   conv -> elementwise_add of a parameter [channels]        conv with a bias
//   conv -> elementwise_add of reshape2(parameter)           conv with a bias
#include "libcore/deploy/onnx/conv_bias.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace pd {
namespace {

bool IsConvolution(const std::string& type) {
  return type == "conv2d" || type == "depthwise_conv2d" || type == "conv3d" ||
         type == "conv2d_transpose" || type == "depthwise_conv2d_transpose";
}

// The operators of one block that make and read a variable. Reads by other
// blocks and fetches count, but have no operator.
struct Uses {
  OpDesc* writer = nullptr;
  OpDesc* reader = nullptr;  // the last one
  int writes = 0, reads = 0;
};

class Mover {
 public:
  Mover(InferenceModel* model, BlockDesc* block)
      : model_(*model), block_(*block) {
    for (const std::string& name : model_.names.fetches) ++uses_[name].reads;
    for (BlockDesc& other : model->program.blocks)
      for (OpDesc& op : other.ops) Count(&op, &other == block);
  }

  void Run() {
    for (OpDesc& op : block_.ops)
      if (IsConvolution(op.type)) Move(&op);
  }

 private:
  void Count(OpDesc* op, bool here) {
    for (const auto& [slot, names] : op->inputs)
      for (const std::string& name : names) {
        Uses& uses = uses_[name];
        ++uses.reads;
        if (here) uses.reader = op;
      }
    for (const auto& [slot, names] : op->outputs)
      for (const std::string& name : names) {
        Uses& uses = uses_[name];
        ++uses.writes;
        if (here) uses.writer = op;
      }
  }

  void Move(OpDesc* conv) {
    const std::string out = conv->Out("Output");
    const Uses uses = uses_[out];
    OpDesc* add = uses.reader;
    if (!conv->In("Bias").empty() || add == nullptr || uses.reads != 1 ||
        uses.writes != 1 || add->type != "elementwise_add" ||
        add->In("X") != out || IsChannelsLast(*conv))
      return;
    const std::string added = add->In("Y"), bias = BiasOf(*add, out);
    // The sum is written earlier than it was: nothing else may write it, nor
    // the bias. In a loop's block the sum may be of the round before.
    if (bias.empty() || uses_[add->Out("Out")].writes != 1 ||
        uses_[bias].writes != 0 || add < conv)
      return;
    conv->SetInput("Bias", {bias});
    conv->SetOutput("Output", {add->Out("Out")});
    *add = OpDesc();
    // The reshape of a bias that nothing reads any more.
    if (--uses_[added].reads == 0 && added != bias)
      *uses_[added].writer = OpDesc();
  }

  static bool IsChannelsLast(const OpDesc& conv) {
    const auto layout = conv.Attr<std::string>("data_format");
    return layout == "NHWC" || layout == "NDHWC";
  }

  // The parameter [channels] that `add` adds to `out`; "" when it adds another
  // thing.
  std::string BiasOf(const OpDesc& add, const std::string& out) {
    const VarDesc* var = block_.FindVar(out);
    if (var == nullptr || var->shape.size() < 4) return "";
    const int64_t channels = var->shape[1];
    const auto is_bias = [&](const std::string& name) {
      const auto it = model_.params.find(name);
      return it != model_.params.end() && it->second.shape == Shape{channels};
    };
    const std::string& y = add.In("Y");
    const int32_t axis = add.Attr<int32_t>("axis");
    if (is_bias(y)) return axis == 1 ? y : "";
    const Uses& uses = uses_[y];
    const VarDesc* shaped = block_.FindVar(y);
    if (uses.writer == nullptr || uses.writes != 1 ||
        uses.writer->type != "reshape2" || shaped == nullptr ||
        (axis != -1 && axis != 0))
      return "";
    Shape per_channel(var->shape.size(), 1);
    per_channel[1] = channels;
    const std::string& x = uses.writer->In("X");
    return shaped->shape == per_channel && is_bias(x) ? x : "";
  }

  const InferenceModel& model_;
  BlockDesc& block_;
  std::unordered_map<std::string, Uses> uses_;
};

}  // namespace

void MoveConvBiases(InferenceModel* model) {
  for (BlockDesc& block : model->program.blocks) Mover(model, &block).Run();
}

}  // namespace pd
