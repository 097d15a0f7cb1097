// SPDX-License-Identifier: Apache-2.0
// Attention whose memory is one matrix for each head, step after step in
// float32. The steps stand one after the other in the program, so their number
// must be known.
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

constexpr int64_t kMaxSteps = 512;
constexpr int64_t kMaxStateHeads = 4096;

// Inputs: queries, keys, values, the state before, its decay, how much of a
// correction is written. All but the state are [N, steps, heads * size].
class LinearAttention {
 public:
  explicit LinearAttention(OnnxNode* node) : node_(node) {}

  void Import() {
    Read();
    if (!node_->ok()) return;
    const std::string q = Heads(0, q_heads_), k = Heads(1, heads_);
    const std::string v = Heads(2, heads_);
    const std::string decay = decays_ ? Heads(4, heads_) : "";
    const std::string beta =
        corrects_ ? Heads(5, node_->Extent(node_->In(5), 2)) : "";
    OnnxNode::Names steps;
    for (int64_t i = 0; i < steps_ && node_->ok(); ++i) {
      if (decays_)  // [N, heads, size or 1, 1]
        state_ = node_->Mul(
            state_,
            node_->Transpose(node_->Unary("exp", At(decay, i)), {0, 1, 3, 2}));
      const std::string key = node_->Transpose(At(k, i), {0, 1, 3, 2});
      std::string value = At(v, i);
      if (corrects_)
        value = node_->Mul(At(beta, i),
                           node_->Sub(value, node_->MatMul(At(k, i), state_)));
      state_ = node_->Add(state_, node_->MatMul(key, value));
      steps.push_back(node_->MatMul(At(q, i), Repeated()));
    }
    if (!node_->ok()) return;
    const std::string all =
        node_->Transpose(node_->Concat(steps, 2), {0, 2, 1, 3});
    const std::string rows = node_->Reshape(
        node_->Affine(all, scale_, 0), {0, steps_, q_heads_ * value_size_});
    const DType dtype = node_->TypeOf(node_->In(0));
    node_->Give(0, node_->Cast(rows, dtype));
    node_->Give(
        1, node_->Cast(state_,
                       node_->Has(3) ? node_->TypeOf(node_->In(3)) : dtype));
  }

 private:
  void Read() {
    const std::string rule = node_->Str("update_rule", "gated_delta");
    decays_ = rule == "gated" || rule == "gated_delta";
    corrects_ = rule == "delta" || rule == "gated_delta";
    q_heads_ = node_->Int("q_num_heads", 0);
    heads_ = node_->Int("kv_num_heads", 0);
    if (!decays_ && !corrects_ && rule != "linear")
      return node_->Fail(InvalidArgument("update_rule '%s'", rule));
    if (node_->Has(4) != decays_ || node_->Has(5) != corrects_)
      return node_->Fail(InvalidArgument(
          "update_rule '%s' with %s decay and %s beta", rule,
          node_->Has(4) ? "a" : "no", node_->Has(5) ? "a" : "no"));
    const Shape q = node_->ShapeOf(node_->In(0));
    const Shape v = node_->ShapeOf(node_->In(2));
    if (!node_->ok()) return;
    if (heads_ < 1 || q_heads_ < heads_ || q_heads_ > kMaxStateHeads ||
        q_heads_ % heads_ != 0 || q.size() != 3 || v.size() != 3 ||
        q[2] < q_heads_ || q[2] % q_heads_ != 0 || v[2] < heads_ ||
        v[2] % heads_ != 0)
      return node_->Fail(
          InvalidArgument("queries %s in %d heads, values %s in %d",
                          ToString(q), q_heads_, ToString(v), heads_));
    steps_ = q[1];
    if (steps_ < 1 || steps_ > kMaxSteps)
      return node_->Fail(
          Unimplemented("%d steps; up to %d, known ones, are "
                        "written out",
                        steps_, kMaxSteps));
    const int64_t size = q[2] / q_heads_;
    value_size_ = v[2] / heads_;
    scale_ = node_->Float("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(size));
    if (node_->Has(3)) {
      state_ = node_->Cast(node_->In(3), DType::kFloat32);
      return;
    }
    if (q[0] < 0)
      return node_->Fail(
          Unimplemented("no state for a batch of no known size"));
    state_ = node_->Full({q[0], heads_, size, value_size_}, 0, DType::kFloat32);
  }

  // Input i as [N, heads, steps, size].
  std::string Heads(size_t i, int64_t heads) {
    const std::string x = node_->Cast(node_->In(i), DType::kFloat32);
    const int64_t width = node_->Extent(x, 2);
    if (node_->ok() && (heads < 1 || node_->Rank(x) != 3 || width < heads ||
                        width % heads != 0))
      node_->Fail(InvalidArgument("input %d has shape %s; expected %d heads", i,
                                  ToString(node_->ShapeOf(x)), heads));
    if (!node_->ok()) return "";
    return node_->Transpose(node_->Reshape(x, {0, 0, heads, width / heads}),
                            {0, 2, 1, 3});
  }

  // One step: [N, heads, 1, size].
  std::string At(const std::string& x, int64_t i) {
    return node_->Slice(x, {2}, {i}, {i + 1});
  }

  // The state of each head for all of its queries' heads.
  std::string Repeated() {
    if (q_heads_ == heads_) return state_;
    OnnxNode::Ints index(static_cast<size_t>(q_heads_));
    for (size_t i = 0; i < index.size(); ++i)
      index[i] = static_cast<int64_t>(i) / (q_heads_ / heads_);
    return node_->Gather(state_, node_->ConstInts(index), 1);
  }

  OnnxNode* const node_;
  std::string state_;  // [N, heads, size, size of values]
  bool decays_ = false, corrects_ = false;
  int64_t q_heads_ = 0, heads_ = 0, steps_ = 0, value_size_ = 0;
  double scale_ = 1;
};

void ImportLinearAttention(OnnxNode* node) { LinearAttention(node).Import(); }

}  // namespace

OnnxImportEntries LinearAttentionImports() {
  return {{"LinearAttention", ImportLinearAttention}};
}

}  // namespace pd
