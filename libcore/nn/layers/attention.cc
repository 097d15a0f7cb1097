// SPDX-License-Identifier: Apache-2.0
// multi_head_attention and the masks for it, of the ops that paddle.nn makes;
// sparse_attention.
#include "libcore/nn/layers/attention.h"

#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/filled_caches.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

using Ints = std::vector<int32_t>;

absl::StatusOr<std::string> Scale(const std::string& x, double scale,
                                  double bias, LayerContext* c) {
  return c->Unary("scale", x,
                  {{"scale", static_cast<float>(scale)},
                   {"bias", static_cast<float>(bias)},
                   {"bias_after_scale", true}});
}

absl::StatusOr<std::string> Cast(const std::string& x, DType to,
                                 LayerContext* c) {
  return c->Unary("cast", x,
                  {{"in_dtype", static_cast<int32_t>(c->TypeOf(x))},
                   {"out_dtype", static_cast<int32_t>(to)}});
}

absl::StatusOr<std::string> WithXShape(const char* type, const std::string& x,
                                       const char* attr, Ints values,
                                       LayerContext* c) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.attrs[attr] = std::move(values);
  return c->Append(std::move(op), {"Out", "XShape"});
}

absl::StatusOr<std::string> Product(const std::string& x, const std::string& y,
                                    bool transpose_y, LayerContext* c) {
  OpDesc op;
  op.type = "matmul_v2";
  op.SetInput("X", {x});
  op.SetInput("Y", {y});
  op.attrs = {{"trans_x", false}, {"trans_y", transpose_y}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> Concat(const std::string& x, const std::string& y,
                                   int axis, LayerContext* c) {
  OpDesc op;
  op.type = "concat";
  op.SetInput("X", {x, y});
  op.attrs["axis"] = int32_t{axis};
  return c->Append(std::move(op), {"Out"});
}

// The sublayer 'q_proj' and the like.
absl::StatusOr<std::string> Projection(const char* name,
                                       const AttentionSpec& spec,
                                       int64_t inputs, const std::string& x,
                                       LayerContext* c) {
  const LayerContext::Sublayer linear(c, "linear", name);
  return Affine({inputs, spec.embed_dim, spec.weight, spec.bias}, x, c);
}

// [N, length, embed_dim] -> [N, heads, length, embed_dim / heads]
absl::StatusOr<std::string> SplitHeads(const AttentionSpec& spec,
                                       const std::string& x, LayerContext* c) {
  const auto heads = static_cast<int32_t>(spec.num_heads);
  const auto size = static_cast<int32_t>(spec.embed_dim / spec.num_heads);
  PD_ASSIGN_OR_RETURN(
      const std::string apart,
      WithXShape("reshape2", x, "shape", {0, 0, heads, size}, c));
  return WithXShape("transpose2", apart, "axis", {0, 2, 1, 3}, c);
}

absl::Status CheckCache(const AttentionSpec& spec, const KeysValues& cache,
                        const LayerContext& c) {
  const int64_t size = spec.embed_dim / spec.num_heads;
  for (const LayerInput* x : {&cache.k, &cache.v}) {
    const Shape& shape = c.ShapeOf(x->variable);
    const bool fits = c.TypeOf(x->variable) == DType::kFloat32 &&
                      shape.size() == 4 &&
                      (shape[1] < 0 || shape[1] == spec.num_heads) &&
                      (shape[3] < 0 || shape[3] == size);
    if (!fits)
      return c.Misfit(absl::StrCat("cached float32 [N, ", spec.num_heads,
                                   ", keys, ", size, "]"),
                      *x);
  }
  return absl::OkStatus();
}

// `now`, [N, heads, 1, size], in a cache that has a place for it: the whole.
absl::StatusOr<std::string> Write(const std::string& cache,
                                  const std::string& now, LayerContext* c) {
  OpChain ops(c->main());
  return ops.Give(c->filled()->Write(cache, now, &ops));
}

// Whether a cache takes keys where it is; else what is filled of it grows.
bool HasPlaces(const LayerInput& cache, const std::string& now,
               LayerContext* c) {
  return c->filled()->CountOf(cache.variable) != nullptr &&
         c->filled()->InRun(*c->main()) && c->ShapeOf(now)[2] == 1;
}

absl::StatusOr<std::string> FilledPart(const std::string& variable,
                                       LayerContext* c) {
  OpChain ops(c->main());
  return ops.Give(c->filled()->Filled(variable, &ops));
}

// The cache with `now` behind it.
absl::StatusOr<std::string> WithKeys(const LayerInput& cache,
                                     const std::string& now, LayerContext* c) {
  if (HasPlaces(cache, now, c)) return Write(cache.variable, now, c);
  std::string before = cache.variable;
  if (c->filled()->CountOf(before) != nullptr) {
    PD_ASSIGN_OR_RETURN(before, FilledPart(before, c));
  }
  return Concat(before, now, 2, c);
}

// Keys and values, those of the cache in front.
absl::Status MakeKeysValues(const AttentionSpec& spec,
                            const AttentionReads& reads, LayerContext* c,
                            AttentionResult* made) {
  if (reads.static_cache.given()) {
    // PaddlePaddle has these projections and leaves them alone.
    c->CountInPaddle("linear");
    c->CountInPaddle("linear");
    made->k = reads.static_cache.k.variable;
    made->v = reads.static_cache.v.variable;
    return CheckCache(spec, reads.static_cache, *c);
  }
  PD_ASSIGN_OR_RETURN(const std::string k,
                      Projection("k_proj", spec, spec.kdim, reads.key, c));
  PD_ASSIGN_OR_RETURN(const std::string v,
                      Projection("v_proj", spec, spec.vdim, reads.value, c));
  PD_ASSIGN_OR_RETURN(made->k, SplitHeads(spec, k, c));
  PD_ASSIGN_OR_RETURN(made->v, SplitHeads(spec, v, c));
  if (!reads.cache.given()) {
    if (reads.key != reads.query || reads.value != reads.query)
      return absl::OkStatus();
    c->filled()->MarkGrowing(made->k);
    c->filled()->MarkGrowing(made->v);
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(CheckCache(spec, reads.cache, *c));
  PD_ASSIGN_OR_RETURN(made->k, WithKeys(reads.cache.k, made->k, c));
  PD_ASSIGN_OR_RETURN(made->v, WithKeys(reads.cache.v, made->v, c));
  return absl::OkStatus();
}

// The keys and values that the query looks at, with the mask for them.
struct LookedAt {
  std::string keys, values, mask;
};

// Of keys in a cache with free places all of it, with these masked, unless a
// mask is about the filled ones.
absl::StatusOr<LookedAt> WhatIsLookedAt(const AttentionReads& reads,
                                        const AttentionResult& made,
                                        LayerContext* c) {
  LookedAt at{made.k, made.v, reads.mask};
  const FilledCaches& filled = *c->filled();
  const bool places =
      filled.CountOf(made.k) != nullptr && filled.CountOf(made.v) != nullptr;
  const bool own_mask = at.mask.empty() || filled.IsMask(at.mask);
  if (places && own_mask) {
    OpChain ops(c->main());
    PD_ASSIGN_OR_RETURN(at.mask,
                        ops.Give(c->filled()->Mask(made.k, false, &ops)));
    return at;
  }
  for (std::string* one : {&at.keys, &at.values, &at.mask})
    if (filled.CountOf(*one) != nullptr || filled.IsMask(*one)) {
      PD_ASSIGN_OR_RETURN(*one, FilledPart(*one, c));
    }
  return at;
}

absl::StatusOr<std::string> BuildMultiHeadAttention(LayerContext* c) {
  const job::MultiHeadAttention& p = c->layer().multi_head_attention();
  const int64_t given = p.embed_dim();
  AttentionSpec spec;
  PD_ASSIGN_OR_RETURN(
      spec.embed_dim,
      SequenceWidth(c->read(), p.has_embed_dim() ? &given : nullptr,
                    "embed_dim", *c));
  PD_RETURN_IF_ERROR(
      CheckHeads(spec.embed_dim, "embed_dim", p.num_heads(), "num_heads"));
  spec.num_heads = p.num_heads();
  spec.kdim = p.has_kdim() ? p.kdim() : spec.embed_dim;
  spec.vdim = p.has_vdim() ? p.vdim() : spec.embed_dim;
  spec.dropout = p.dropout();
  spec.weight = &p.weight_attr();
  spec.bias = p.bias() ? &p.bias_attr() : nullptr;
  AttentionReads reads;
  PD_ASSIGN_OR_RETURN(const auto cache, ReadCaches("cache", 1, *c));
  PD_ASSIGN_OR_RETURN(const auto fixed, ReadCaches("static_cache", 1, *c));
  reads.cache = cache[0];
  reads.static_cache = fixed[0];
  reads.query = c->input();
  if (!reads.static_cache.given()) {
    const LayerInput* key = c->Named("key");
    const LayerInput* value = c->Named("value");
    if (key == nullptr) key = &c->read();
    if (value == nullptr) value = &c->read();
    PD_RETURN_IF_ERROR(SequenceWidth(*key, &spec.kdim, "kdim", *c).status());
    PD_RETURN_IF_ERROR(SequenceWidth(*value, &spec.vdim, "vdim", *c).status());
    reads.key = key->variable;
    reads.value = value->variable;
  } else if (reads.cache.given() || p.has_key() || p.has_value()) {
    return InvalidArgument(
        "'static_cache' stands for the keys and values; '%s' cannot stand "
        "beside it",
        reads.cache.given() ? "cache"
        : p.has_key()       ? "key"
                            : "value");
  }
  PD_ASSIGN_OR_RETURN(reads.mask, AdditiveMask(c->Named("attn_mask"), c));
  PD_ASSIGN_OR_RETURN(const AttentionResult made, Attend(spec, reads, c));
  if (p.need_weights()) c->AddOutput("weights", made.weights);
  c->AddOutput("k", made.k);
  c->AddOutput("v", made.v);
  c->AddGroup("cache", {made.k, made.v});
  return made.out;
}

// The extent of an axis as a tensor [1].
absl::StatusOr<std::string> ExtentTensor(const std::string& x, int axis,
                                         LayerContext* c) {
  OpDesc shape;
  shape.type = "shape";
  shape.SetInput("Input", {x});
  PD_ASSIGN_OR_RETURN(const std::string extents,
                      c->Append(std::move(shape), {"Out"}));
  OpDesc slice;
  slice.type = "slice";
  slice.SetInput("Input", {extents});
  slice.attrs = {{"axes", Ints{0}},
                 {"starts", Ints{axis}},
                 {"ends", Ints{axis + 1}},
                 {"infer_flags", Ints{1}},
                 {"decrease_axis", Ints{}}};
  return c->Append(std::move(slice), {"Out"});
}

// 0 up to the diagonal and -inf above it, [extent, extent].
absl::StatusOr<std::string> Triangle(const std::string& extent_tensor,
                                     int64_t extent, LayerContext* c) {
  OpDesc fill;
  fill.type = "fill_constant";
  if (!extent_tensor.empty())
    fill.SetInput("ShapeTensorList", {extent_tensor, extent_tensor});
  fill.attrs = {{"shape", std::vector<int64_t>{extent, extent}},
                {"dtype", static_cast<int32_t>(DType::kFloat32)},
                {"value", -std::numeric_limits<float>::infinity()},
                {"str_value", std::string("-inf")}};
  PD_ASSIGN_OR_RETURN(const std::string filled,
                      c->Append(std::move(fill), {"Out"}));
  return c->Unary("tril_triu", filled,
                  {{"diagonal", int32_t{1}}, {"lower", false}});
}

absl::StatusOr<std::string> BuildSquareSubsequentMask(LayerContext* c) {
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 64, "sequences [N, length, ...]"));
  const LayerInput* cache = c->Named("cache");
  const int64_t length = c->shape()[1];
  if (cache == nullptr) {
    std::string extent;
    if (length < 0) {
      PD_ASSIGN_OR_RETURN(extent, ExtentTensor(c->input(), 1, c));
    }
    return Triangle(extent, length, c);
  }
  if (c->ShapeOf(cache->variable).size() != 4)
    return c->Misfit("cached keys [N, heads, keys, size]", *cache);
  LayerInput filled = *cache;
  if (c->filled()->CountOf(filled.variable) != nullptr) {
    // One token sees all keys before it, and itself.
    OpChain ops(c->main());
    if (length == 1 && c->filled()->InRun(*c->main()))
      return ops.Give(c->filled()->Mask(filled.variable, true, &ops));
    PD_ASSIGN_OR_RETURN(filled.variable, FilledPart(filled.variable, c));
  }
  PD_ASSIGN_OR_RETURN(const std::string before,
                      ExtentTensor(filled.variable, 2, c));
  PD_ASSIGN_OR_RETURN(const std::string now, ExtentTensor(c->input(), 1, c));
  PD_ASSIGN_OR_RETURN(const std::string keys,
                      c->Binary("elementwise_add", before, now));
  PD_ASSIGN_OR_RETURN(const std::string triangle, Triangle(keys, -1, c));
  OpDesc slice;
  slice.type = "slice";
  slice.SetInput("Input", {triangle});
  slice.SetInput("StartsTensorList", {before});
  slice.attrs = {{"axes", Ints{0}},
                 {"starts", Ints{-1}},
                 {"ends", Ints{INT_MAX}},
                 {"infer_flags", Ints{-1}},
                 {"decrease_axis", Ints{}}};
  return c->Append(std::move(slice), {"Out"});
}

absl::StatusOr<std::string> BuildPositions(LayerContext* c) {
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 64, "tokens [N, length, ...]"));
  const LayerInput* cache = c->Named("cache");
  if (cache != nullptr && c->ShapeOf(cache->variable).size() != 4)
    return c->Misfit("cached keys [N, heads, keys, size]", *cache);
  OpChain ops(c->main());
  std::string tokens = c->input();
  for (size_t axis = c->shape().size(); axis-- > 2;)
    tokens = ops.Op("slice", {{"Input", tokens}}, {"Out"},
                    {{"axes", Ints{static_cast<int32_t>(axis)}},
                     {"starts", Ints{0}},
                     {"ends", Ints{1}},
                     {"infer_flags", Ints{1}},
                     {"decrease_axis", Ints{static_cast<int32_t>(axis)}}});
  const std::string ones = ops.Unary(
      "fill_any_like", tokens,
      {{"value", 1.0f}, {"dtype", static_cast<int32_t>(DType::kInt64)}});
  std::string places =
      ops.Scale(ops.Unary("cumsum", ones, {{"axis", int32_t{1}}}), 1, -1);
  if (cache != nullptr) {
    const std::string* count = c->filled()->CountOf(cache->variable);
    places = ops.Add(
        places, count != nullptr
                    ? *count
                    : ops.Cast(ops.Extent(cache->variable, 2), DType::kInt64));
  }
  auto made = ops.Give(places);
  return made.ok() ? made : Annotate(made.status(), c->Described());
}

absl::StatusOr<std::string> BuildPaddingMask(LayerContext* c) {
  const job::PaddingMask& p = c->layer().padding_mask();
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 2, "numbers [N, length]"));
  if (!IsInteger(c->dtype()))
    return c->Misfit(
        absl::StrCat("integers [N, length], not ", Name(c->dtype())));
  OpDesc pad;
  pad.type = "fill_constant";
  pad.attrs = {{"shape", std::vector<int64_t>{1}},
               {"dtype", static_cast<int32_t>(c->dtype())},
               {"value", static_cast<float>(p.pad_token_id())},
               {"str_value", absl::StrCat(p.pad_token_id())}};
  PD_ASSIGN_OR_RETURN(const std::string id, c->Append(std::move(pad), {"Out"}));
  PD_ASSIGN_OR_RETURN(const std::string padded,
                      c->Binary("equal", c->input(), id));
  PD_ASSIGN_OR_RETURN(const std::string ones, Cast(padded, DType::kFloat32, c));
  PD_ASSIGN_OR_RETURN(const std::string mask, Scale(ones, p.value(), 0, c));
  return WithXShape("unsqueeze2", mask, "axes", {1, 2}, c);
}

// The query's type and these extents, -1 for any.
absl::Status ExpectFloats(const LayerInput& x, const Shape& shape,
                          const char* expected, LayerContext* c) {
  const Shape& given = c->ShapeOf(x.variable);
  bool fits = given.size() == shape.size() &&
              c->TypeOf(x.variable) == c->dtype(0) && !IsInteger(c->dtype(0));
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] < 0 || given[i] < 0 || given[i] == shape[i];
  return fits ? absl::OkStatus() : c->Misfit(expected, x);
}

absl::StatusOr<std::string> BuildSparseAttention(LayerContext* c) {
  constexpr const char* kExpected =
      "query, key and value of one type and shape [N, num_heads, length, "
      "head_dim]";
  PD_RETURN_IF_ERROR(c->ExpectRank(4, 4, kExpected));
  const Shape query = c->shape();
  for (size_t i = 0; i < 3; ++i)
    PD_RETURN_IF_ERROR(ExpectFloats(c->read(i), query, kExpected, c));
  for (size_t i = 3; i < 5; ++i)
    if (c->dtype(i) != DType::kInt32 || c->shape(i).size() != 3)
      return c->Misfit(i == 3 ? "int32 offsets [N, num_heads, length + 1]"
                              : "int32 columns [N, num_heads, places]",
                       i);
  OpDesc op;
  op.type = "sparse_attention";
  const char* const kSlots[] = {"Q", "K", "V", "Offset", "Columns"};
  for (size_t i = 0; i < 5; ++i) op.SetInput(kSlots[i], {c->input(i)});
  if (const LayerInput* mask = c->Named("key_padding_mask")) {
    PD_RETURN_IF_ERROR(ExpectFloats(*mask, {query[0], query[2]},
                                    "a key_padding_mask [N, length] of the "
                                    "query's type",
                                    c));
    op.SetInput("KeyPaddingMask", {mask->variable});
  }
  if (const LayerInput* mask = c->Named("attn_mask")) {
    PD_RETURN_IF_ERROR(ExpectFloats(*mask, {query[2], query[2]},
                                    "an attn_mask [length, length] of the "
                                    "query's type",
                                    c));
    op.SetInput("AttnMask", {mask->variable});
  }
  return c->Append(std::move(op), {"Out", "SparseDotSdd", "Softmax"});
}

}  // namespace

absl::StatusOr<int64_t> SequenceWidth(const LayerInput& x, const int64_t* given,
                                      const char* field,
                                      const LayerContext& c) {
  const Shape& shape = c.ShapeOf(x.variable);
  const DType dtype = c.TypeOf(x.variable);
  const std::string width = given != nullptr ? absl::StrCat(*given) : field;
  if (shape.size() != 3 ||
      (given != nullptr && shape[2] >= 0 && shape[2] != *given))
    return c.Misfit(absl::StrCat("sequences [N, length, ", width, "]"), x);
  if (dtype != DType::kFloat32)
    return c.Misfit(absl::StrCat("float32, not ", Name(dtype)), x);
  if (given != nullptr) return *given;
  if (shape[2] < 0)
    return c.Misfit(absl::StrCat("a known number of features or '", field, "'"),
                    x);
  return shape[2];
}

absl::Status CheckHeads(int64_t features, const char* features_field,
                        int64_t heads, const char* heads_field) {
  if (features % heads == 0) return absl::OkStatus();
  return InvalidArgument("'%s' is %d; it must divide '%s', which is %d",
                         heads_field, heads, features_field, features);
}

absl::StatusOr<std::string> AdditiveMask(const LayerInput* mask,
                                         LayerContext* c) {
  if (mask == nullptr) return std::string();
  const DType dtype = c->TypeOf(mask->variable);
  if (c->ShapeOf(mask->variable).size() > 4)
    return c->Misfit("a mask that fits [N, heads, length, keys]", *mask);
  if (dtype == DType::kFloat32) return mask->variable;
  PD_ASSIGN_OR_RETURN(const std::string numbers,
                      Cast(mask->variable, DType::kFloat32, c));
  if (dtype != DType::kBool && !IsInteger(dtype)) return numbers;
  PD_ASSIGN_OR_RETURN(const std::string less, Scale(numbers, 1, -1, c));
  return Scale(less, 1e9, 0, c);
}

absl::StatusOr<std::vector<KeysValues>> ReadCaches(const char* field,
                                                   int layers,
                                                   const LayerContext& c) {
  const std::vector<LayerInput>& given = c.AllNamed(field);
  std::vector<KeysValues> caches(static_cast<size_t>(layers));
  if (given.empty()) return caches;
  if (given.size() != 2 * caches.size())
    return InvalidArgument(
        "'%s' names %d; it takes k and v of %s: %d", field, given.size(),
        layers == 1 ? "the layer" : "each layer", 2 * caches.size());
  for (size_t i = 0; i < caches.size(); ++i)
    caches[i] = {given[2 * i], given[2 * i + 1]};
  return caches;
}

absl::StatusOr<AttentionResult> Attend(const AttentionSpec& spec,
                                       const AttentionReads& reads,
                                       LayerContext* c) {
  AttentionResult made;
  PD_ASSIGN_OR_RETURN(
      const std::string projected,
      Projection("q_proj", spec, spec.embed_dim, reads.query, c));
  PD_ASSIGN_OR_RETURN(const std::string q, SplitHeads(spec, projected, c));
  PD_RETURN_IF_ERROR(MakeKeysValues(spec, reads, c, &made));
  const double size = static_cast<double>(spec.embed_dim / spec.num_heads);
  PD_ASSIGN_OR_RETURN(const std::string scaled,
                      Scale(q, 1 / std::sqrt(size), 0, c));
  PD_ASSIGN_OR_RETURN(const LookedAt at, WhatIsLookedAt(reads, made, c));
  PD_ASSIGN_OR_RETURN(std::string product, Product(scaled, at.keys, true, c));
  if (!at.mask.empty()) {
    PD_ASSIGN_OR_RETURN(product,
                        c->Binary("elementwise_add", product, at.mask));
  }
  PD_ASSIGN_OR_RETURN(const std::string weights,
                      c->Unary("softmax", product, {{"axis", int32_t{-1}}}));
  PD_ASSIGN_OR_RETURN(made.weights, DropOut(spec.dropout, weights, c));
  PD_ASSIGN_OR_RETURN(const std::string heads,
                      Product(made.weights, at.values, false, c));
  PD_ASSIGN_OR_RETURN(const std::string together,
                      WithXShape("transpose2", heads, "axis", {0, 2, 1, 3}, c));
  PD_ASSIGN_OR_RETURN(
      const std::string flat,
      WithXShape("reshape2", together, "shape",
                 {0, 0, static_cast<int32_t>(spec.embed_dim)}, c));
  PD_ASSIGN_OR_RETURN(made.out,
                      Projection("out_proj", spec, spec.embed_dim, flat, c));
  return made;
}

void AddAttentionLayers(LayerTable* table) {
  (*table)[job::Layer::kMultiHeadAttention] = {BuildMultiHeadAttention};
  (*table)[job::Layer::kSquareSubsequentMask] = {BuildSquareSubsequentMask};
  (*table)[job::Layer::kPositions] = {BuildPositions};
  (*table)[job::Layer::kPaddingMask] = {BuildPaddingMask};
  (*table)[job::Layer::kSparseAttention] = {BuildSparseAttention, 5, 5};
}

}  // namespace pd
