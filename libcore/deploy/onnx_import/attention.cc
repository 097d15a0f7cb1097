// SPDX-License-Identifier: Apache-2.0
// Attention and what stands around it in language models: positions by
// rotation, gated activations, the norm by the root of the mean square, caches
// that are written in part. Halves are computed with as float32.
#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

constexpr int64_t kMaxHeads = 65536;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

// float32 for halves; other dtypes stay.
std::string Computed(OnnxNode* node, const std::string& x) {
  const DType dtype = node->TypeOf(x);
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16
             ? node->Cast(x, DType::kFloat32)
             : x;
}

// [N, S, heads * D] -> [N, heads, S, D]. An extent of 0 stays as it is in x.
std::string ByHead(OnnxNode* node, const std::string& x, int64_t heads) {
  const int64_t width = node->Extent(x, 2);
  if (node->ok() &&
      (heads < 1 || heads > kMaxHeads || width < 0 || width % heads != 0))
    node->Fail(
        InvalidArgument("rows of %d elements in %d heads", width, heads));
  if (!node->ok()) return "";
  return node->Transpose(node->Reshape(x, {0, 0, heads, width / heads}),
                         {0, 2, 1, 3});
}

class AttentionImport {
 public:
  explicit AttentionImport(OnnxNode* node) : node_(node) {}

  void Import() {
    Take();
    if (!node_->ok()) return;
    const std::string kt = Computed(node_, RepeatHeads(k_));
    std::string scores = node_->MatMul(
        node_->Affine(Computed(node_, q_), Scale(), 0), kt, false, true);
    const auto mode = node_->Int("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      return node_->Fail(InvalidArgument("qk_matmul_output_mode %d", mode));
    std::string stages[4] = {scores, "", "", ""};
    const double cap = node_->Float("softcap", 0);
    if (cap > 0)
      scores = node_->Affine(
          node_->Unary("tanh", node_->Affine(scores, 1 / cap, 0)), cap, 0);
    stages[1] = scores;
    const std::string bias = Bias(node_->TypeOf(scores));
    if (!bias.empty()) scores = node_->Add(scores, bias);
    stages[2] = scores;
    std::string weights =
        node_->Unary("softmax", scores, {{"axis", static_cast<int32_t>(-1)}});
    if (!bias.empty()) weights = WithoutEmptyRows(weights, bias);
    stages[3] = weights;
    node_->Give(3, node_->Cast(stages[mode], node_->TypeOf(node_->In(0))));
    std::string y = node_->MatMul(weights, Computed(node_, RepeatHeads(v_)));
    if (by_rows_) {
      const std::string rows = node_->Transpose(y, {0, 2, 1, 3});
      y = node_->Reshape(
          rows, {0, 0, q_heads_ * std::max<int64_t>(1, node_->Extent(v_, 3))});
    }
    node_->Give(0, node_->Cast(y, node_->TypeOf(node_->In(0))));
  }

 private:
  // Inputs: Q, K, V, mask, past key, past value, lengths of keys.
  void Take() {
    q_ = node_->In(0), k_ = node_->In(1), v_ = node_->In(2);
    const int64_t rank = node_->Rank(q_);
    if (!node_->ok()) return;
    if ((rank != 3 && rank != 4) || node_->Rank(k_) != rank ||
        node_->Rank(v_) != rank)
      return node_->Fail(InvalidArgument(
          "Q, K and V of shapes %s, %s, %s; expected 3 or 4 dimensions",
          ToString(node_->ShapeOf(q_)), ToString(node_->ShapeOf(k_)),
          ToString(node_->ShapeOf(v_))));
    by_rows_ = rank == 3;
    if (by_rows_) {
      const int64_t heads = node_->Int("kv_num_heads", 0);
      q_ = ByHead(node_, q_, node_->Int("q_num_heads", 0));
      k_ = ByHead(node_, k_, heads);
      v_ = ByHead(node_, v_, heads);
    }
    q_heads_ = node_->Extent(q_, 1), k_heads_ = node_->Extent(k_, 1);
    if (!node_->ok()) return;
    if (k_heads_ < 1 || q_heads_ < 1 || q_heads_ > kMaxHeads ||
        q_heads_ % k_heads_ != 0)
      return node_->Fail(InvalidArgument("%d heads of queries, %d of keys",
                                         q_heads_, k_heads_));
    if (node_->Has(4) != node_->Has(5) || (node_->Has(4) && node_->Has(6)))
      return node_->Fail(InvalidArgument(
          "past keys and values go together, and without lengths of keys"));
    if (node_->Has(4)) {
      past_ = node_->In(4);
      k_ = node_->Concat({past_, k_}, 2);
      v_ = node_->Concat({node_->In(5), v_}, 2);
    }
    node_->Give(1, k_);
    node_->Give(2, v_);
  }

  double Scale() {
    const int64_t depth = node_->Extent(q_, 3);
    if (node_->ok() && !node_->HasAttr("scale") && depth < 1)
      node_->Fail(Unimplemented("a head's size of %d and no scale", depth));
    return node_->HasAttr("scale") ? node_->Float("scale", 1)
                                   : 1 / std::sqrt(static_cast<double>(
                                             std::max<int64_t>(1, depth)));
  }

  // Each head of keys or values for all of its queries' heads.
  std::string RepeatHeads(const std::string& x) {
    if (q_heads_ == k_heads_ || !node_->ok()) return x;
    Ints index(static_cast<size_t>(q_heads_));
    for (size_t i = 0; i < index.size(); ++i)
      index[i] = static_cast<int64_t>(i) / (q_heads_ / k_heads_);
    return node_->Gather(x, node_->ConstInts(index), 1);
  }

  std::string BiasOf(const std::string& allowed, DType dtype) {
    return node_->Where(allowed, node_->Scalar(0, dtype),
                        node_->Scalar(kLowest, dtype));
  }

  // The mask as numbers; keys that it does not name are not seen.
  std::string Mask(DType dtype) {
    std::string mask = node_->In(3);
    mask = node_->TypeOf(mask) == DType::kBool ? BiasOf(mask, dtype)
                                               : node_->Cast(mask, dtype);
    const int64_t rank = node_->Rank(mask);
    if (node_->ok() && (rank < 1 || rank > 4))
      node_->Fail(InvalidArgument("a mask of %d dimensions", rank));
    if (!node_->ok()) return "";
    const int64_t named = node_->Extent(mask, rank - 1);
    const int64_t keys = node_->Extent(k_, 2);
    if (named < 0 || keys <= named) return mask;
    std::vector<int32_t> pads(static_cast<size_t>(2 * rank));
    pads.back() = OnnxAttrInts({keys - named})[0];
    return node_->Unary(
        "pad", mask,
        {{"paddings", pads}, {"pad_value", static_cast<float>(kLowest)}});
  }

  // The numbers that are added to scores; "": none.
  std::string Bias(DType dtype) {
    const bool causal = node_->Int("is_causal", 0) != 0;
    const int64_t left = node_->Int("left_window_size", -1);
    const int64_t right = node_->Int("right_window_size", -1);
    if (left < -1 || right < -1)
      node_->Fail(InvalidArgument("a window of %d and %d keys", left, right));
    std::string bias = node_->Has(3) ? Mask(dtype) : "";
    const auto restrict = [&](const std::string& allowed) {
      const std::string more = BiasOf(allowed, dtype);
      bias = bias.empty() ? more : node_->Add(bias, more);
    };
    const std::string lengths =
        node_->Has(6) ? node_->Reshape(node_->Cast(node_->In(6), DType::kInt64),
                                       {-1, 1, 1, 1})
                      : "";
    const std::string keys = node_->Positions(k_, 2);
    if (causal || left >= 0 || right >= 0) {
      // How far behind its query a key is, [(N, 1,) queries, keys].
      std::string at = node_->Unsqueeze(node_->Positions(q_, 2), {1});
      const auto length = [&](const std::string& x) {
        return node_->Slice(node_->ShapeVar(x), {0}, {2}, {3});
      };
      if (!past_.empty()) at = node_->Add(at, length(past_));
      if (!lengths.empty())
        at = node_->Add(at, node_->Sub(lengths, length(q_)));
      const std::string behind = node_->Sub(at, keys);
      const auto number = [&](int64_t n) { return node_->ConstInts({n}); };
      if (causal) restrict(node_->Binary("greater_equal", behind, number(0)));
      if (left >= 0)
        restrict(node_->Binary("less_equal", behind, number(left)));
      if (right >= 0)
        restrict(node_->Binary("greater_equal", behind, number(-right)));
    }
    if (!lengths.empty()) restrict(node_->Binary("less_than", keys, lengths));
    return bias;
  }

  // A query that sees no key answers with zeros.
  std::string WithoutEmptyRows(const std::string& weights,
                               const std::string& bias) {
    const DType dtype = node_->TypeOf(weights);
    const std::string best = node_->Reduce("reduce_max", bias, {-1}, true);
    const std::string empty =
        node_->Binary("equal", best, node_->Scalar(kLowest, dtype));
    return node_->Where(empty, node_->Scalar(0, dtype), weights);
  }

  OnnxNode* const node_;
  std::string q_, k_, v_, past_;  // [N, heads, length, size]
  bool by_rows_ = false;
  int64_t q_heads_ = 0, k_heads_ = 0;
};

void ImportAttention(OnnxNode* node) {
  if (node->Int("softmax_precision", 1) != 1)
    (void)node->ElementType(node->Int("softmax_precision", 1));
  AttentionImport(node).Import();
}

// Inputs: x, cosines, sines, the place of each row in those two.
void ImportRotary(OnnxNode* node) {
  const std::string given = node->In(0);
  const int64_t rank = node->Rank(given);
  const int64_t heads = node->Int("num_heads", 0);
  if (node->ok() && rank != 4 && (rank != 3 || heads < 1))
    node->Fail(
        InvalidArgument("an input of %d dimensions and %d heads", rank, heads));
  if (!node->ok()) return;
  const std::string x = rank == 3 ? ByHead(node, given, heads) : given;
  const int64_t size = node->Extent(x, 3);
  int64_t turned = node->Int("rotary_embedding_dim", 0);
  if (turned == 0) turned = size;
  if (node->ok() &&
      (size < 2 || turned < 2 || turned > size || turned % 2 != 0))
    node->Fail(InvalidArgument("%d of %d elements are rotated", turned, size));
  if (!node->ok()) return;
  const auto cache = [&](size_t i) {
    std::string v = node->In(i);
    if (node->Has(3)) {
      const std::string at = node->In(3);
      const std::string rows = node->Gather(v, node->Reshape(at, {-1}), 0);
      v = node->ReshapeTo(rows, {{-1, at, 0}, {-1, at, 1}, {turned / 2}});
    }
    return node->Unsqueeze(v, {1});  // for all heads
  };
  const std::string cosine = cache(1), sine = cache(2);
  const bool interleaved = node->Int("interleaved", 0) != 0;
  const int64_t half = turned / 2;
  const auto part = [&](int64_t i) {
    return interleaved ? node->Slice(x, {3}, {i}, {turned}, {2})
                       : node->Slice(x, {3}, {i * half}, {(i + 1) * half});
  };
  const std::string a = part(0), b = part(1);
  const std::string real = node->Sub(node->Mul(cosine, a), node->Mul(sine, b));
  const std::string imag = node->Add(node->Mul(sine, a), node->Mul(cosine, b));
  std::string y;
  if (interleaved)
    y = node->Reshape(
        node->Concat({node->Unsqueeze(real, {4}), node->Unsqueeze(imag, {4})},
                     4),
        {0, 0, 0, turned});
  else
    y = node->Concat({real, imag}, 3);
  if (turned < size)
    y = node->Concat({y, node->Slice(x, {3}, {turned}, {size})}, 3);
  if (rank == 3)
    y = node->Reshape(node->Transpose(y, {0, 2, 1, 3}), {0, 0, heads * size});
  node->Give(0, y);
}

// x / sqrt(mean of squares + epsilon), by scale.
void ImportRmsNorm(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(node->Int("axis", -1), rank);
  if (!node->ok()) return;
  if (rank < 1) return node->Fail(InvalidArgument("a scalar has no axis"));
  Ints axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  const std::string wide = Computed(node, x);
  const std::string mean =
      node->Reduce("reduce_mean", node->Mul(wide, wide), axes, true);
  const std::string inverse = node->Unary(
      "rsqrt", node->Affine(mean, 1, node->Float("epsilon", 1e-5f)));
  const DType dtype = node->TypeOf(node->In(1));
  node->Give(
      0, node->Mul(node->Cast(node->Mul(wide, inverse), dtype), node->In(1)));
}

std::string Swish(OnnxNode* node, const std::string& x, double alpha) {
  const std::string wide = Computed(node, x);
  const std::string gate = node->Unary("sigmoid", node->Affine(wide, alpha, 0));
  return node->Cast(node->Mul(wide, gate), node->TypeOf(x));
}

void ImportSwish(OnnxNode* node) {
  node->Give(0, Swish(node, node->In(0), node->Float("alpha", 1)));
}

void ImportSwiGlu(OnnxNode* node) {
  node->Give(0, node->Mul(Swish(node, node->In(0), node->Float("alpha", 1)),
                          node->In(1)));
}

// A convolution of each channel over what came before it: inputs x, filter,
// bias, the last elements of the call before.
void ImportCausalConv(OnnxNode* node) {
  const std::string x = node->In(0), filter = node->In(1);
  const Shape shape = node->ShapeOf(x), taps = node->ShapeOf(filter);
  const std::string activation = node->Str("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return node->Fail(InvalidArgument("activation '%s'", activation));
  if (node->ok() && (shape.size() != 3 || taps.size() != 3 || taps[2] < 1 ||
                     shape[1] < 1 || taps[0] != shape[1] || taps[1] != 1 ||
                     shape[1] > (1 << 20) || taps[2] > (1 << 20)))
    node->Fail(InvalidArgument("input %s, filter %s", ToString(shape),
                               ToString(taps)));
  if (!node->ok()) return;
  const int64_t before = taps[2] - 1;
  std::string wide = Computed(node, x);
  if (before > 0 && node->Has(3))
    wide = node->Concat({Computed(node, node->In(3)), wide}, 2);
  else if (before > 0)
    wide = node->Squeeze(
        node->Unary(
            "pad3d", node->Unsqueeze(wide, {2, 3}),
            {{"paddings",
              std::vector<int32_t>{OnnxAttrInts({before})[0], 0, 0, 0, 0, 0}},
             {"mode", std::string("constant")},
             {"value", 0.0f},
             {"data_format", std::string("NCDHW")}}),
        {2, 3});
  std::string y = node->Squeeze(
      node->Emit("conv2d",
                 {{"Input", {node->Unsqueeze(wide, {2})}},
                  {"Filter", {node->Unsqueeze(Computed(node, filter), {2})}}},
                 {{"strides", std::vector<int32_t>{1, 1}},
                  {"paddings", std::vector<int32_t>{0, 0}},
                  {"dilations", std::vector<int32_t>{1, 1}},
                  {"groups", OnnxAttrInts({shape[1]})[0]}},
                 "Output"),
      {2});
  if (node->Has(2))
    y = node->Add(y, node->Reshape(Computed(node, node->In(2)), {1, -1, 1}));
  const DType dtype = node->TypeOf(x);
  y = node->Cast(y, dtype);
  node->Give(0, activation == "none" ? y : Swish(node, y, 1));
  if (!node->Wants(1)) return;
  const int64_t all = node->Extent(wide, 2);
  if (node->ok() && all < 0)
    return node->Fail(Unimplemented("a state of a length that is not known"));
  node->Give(1,
             node->Cast(node->Slice(wide, {2}, {all - before}, {all}), dtype));
}

// A part of a cache along an axis is replaced, at a place for each row: what
// the cache holds there is left out by the distance from that place.
void ImportTensorScatter(OnnxNode* node) {
  const std::string cache = node->In(0), update = node->In(1);
  const Shape shape = node->ShapeOf(cache), part = node->ShapeOf(update);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = node->Axis(node->Int("axis", -2), rank);
  const std::string mode = node->Str("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return node->Fail(InvalidArgument("mode '%s'", mode));
  if (!node->ok()) return;
  const auto at = static_cast<size_t>(axis);
  if (rank < 2 || axis < 1 || part.size() != shape.size() || shape[at] < 1 ||
      part[at] < 1 || part[at] > shape[at])
    return node->Fail(InvalidArgument("%s into %s along axis %d",
                                      ToString(part), ToString(shape), axis));
  // How far each place of the cache lies behind the first that is written.
  Ints column(static_cast<size_t>(rank), 1);
  column[at] = shape[at];
  Ints rows(static_cast<size_t>(rank), 1);
  rows[0] = -1;
  std::string behind = node->Reshape(node->Positions(cache, axis), column);
  if (node->Has(2))
    behind = node->Sub(
        behind, node->Reshape(node->Cast(node->In(2), DType::kInt64), rows));
  if (mode == "circular")
    behind =
        node->Binary("elementwise_mod", behind, node->ConstInts({shape[at]}));
  const std::string none = node->ConstInts({0});
  const std::string last = node->ConstInts({part[at] - 1});
  const std::string taken = node->Binary(
      "elementwise_min", node->Binary("elementwise_max", behind, none), last);
  const std::string hit =
      node->Binary("equal", behind, taken);  // inside of what is written
  const std::string index = node->Add(
      taken,
      node->Cast(node->FullLike(cache, 0, DType::kInt64), DType::kInt64));
  const std::string there =
      node->Emit("take_along_axis", {{"Input", {update}}, {"Index", {index}}},
                 {{"Axis", static_cast<int32_t>(axis)}}, "Result");
  node->Give(0, node->Where(hit, there, cache));
}

}  // namespace

OnnxImportEntries AttentionImports() {
  return {
      {"Attention", ImportAttention},
      {"CausalConvWithState", ImportCausalConv},
      {"RMSNormalization", ImportRmsNorm},
      {"RotaryEmbedding", ImportRotary},
      {"SwiGLU", ImportSwiGlu},
      {"Swish", ImportSwish},
      {"TensorScatter", ImportTensorScatter},
  };
}

}  // namespace pd
