// SPDX-License-Identifier: Apache-2.0
// transformer_encoder_layer, transformer_decoder_layer, stacks of them, and
// transformer: paddle.nn's classes of these names, op for op.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/attention.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"

namespace pd {
namespace {

// The arguments of one layer, of the encoder or of the decoder.
struct LayerArguments {
  int64_t d_model = 0, nhead = 0, dim_feedforward = 0;
  double dropout = 0, attn_dropout = 0, act_dropout = 0;
  std::string activation;
  double layer_norm_eps = 1e-5;
  bool normalize_before = false, bias = true;
  // Self-attention, (decoder) cross-attention, the two matrices.
  std::vector<job::ParamAttr> weight_attr, bias_attr;
};

using Attrs = google::protobuf::RepeatedPtrField<job::ParamAttr>;

// One attribute for `count` parts. PaddlePaddle numbers a name that it gives to
// several.
std::vector<job::ParamAttr> ForAll(const Attrs& given, size_t count) {
  std::vector<job::ParamAttr> all(count);
  for (size_t i = 0; i < count && !given.empty(); ++i) {
    all[i] = given[0];
    if (given[0].has_name())
      all[i].set_name(absl::StrCat(given[0].name(), "_", i));
  }
  return all;
}

// One attribute, or one for each part.
absl::StatusOr<std::vector<job::ParamAttr>> PerPart(const Attrs& given,
                                                    size_t count,
                                                    const char* field) {
  if (given.size() <= 1) return ForAll(given, count);
  if (static_cast<size_t>(given.size()) != count)
    return InvalidArgument("'%s' stands %d times; it takes 1 or %d", field,
                           given.size(), count);
  return std::vector<job::ParamAttr>(given.begin(), given.end());
}

// Fields that all messages of this family have.
template <typename Message>
LayerArguments CommonArguments(const Message& p) {
  LayerArguments a;
  a.nhead = p.nhead();
  a.dim_feedforward = p.dim_feedforward();
  a.dropout = p.dropout();
  a.attn_dropout = p.has_attn_dropout() ? p.attn_dropout() : p.dropout();
  a.act_dropout = p.has_act_dropout() ? p.act_dropout() : p.dropout();
  a.activation = p.activation();
  a.layer_norm_eps = p.layer_norm_eps();
  a.normalize_before = p.normalize_before();
  a.bias = p.bias();
  return a;
}

template <typename Message>
absl::StatusOr<LayerArguments> ReadArguments(const Message& p, size_t parts,
                                             const LayerContext& c) {
  LayerArguments a = CommonArguments(p);
  const int64_t given = p.d_model();
  PD_ASSIGN_OR_RETURN(
      a.d_model, SequenceWidth(c.read(), p.has_d_model() ? &given : nullptr,
                               "d_model", c));
  PD_RETURN_IF_ERROR(CheckHeads(a.d_model, "d_model", a.nhead, "nhead"));
  PD_ASSIGN_OR_RETURN(a.weight_attr,
                      PerPart(p.weight_attr(), parts, "weight_attr"));
  PD_ASSIGN_OR_RETURN(a.bias_attr, PerPart(p.bias_attr(), parts, "bias_attr"));
  return a;
}

// The inputs of a layer beside its main one, and the results of a layer.
struct LayerState {
  std::string memory;  // of the decoder; "" with a static cache
  std::string mask, memory_mask;
  KeysValues cache, static_cache;
};
struct LayerResult {
  std::string out;
  AttentionResult self, cross;
};

// One layer under construction: x goes through parts, each around a residual.
class LayerMaker {
 public:
  LayerMaker(const LayerArguments& arguments, std::string x, LayerContext* c)
      : a_(arguments), x_(std::move(x)), c_(c) {}

  // Begins part `number` (from 1): the residual is x, normalised or not.
  absl::Status Enter(int number) {
    residual_ = x_;
    return a_.normalize_before ? Normalize(number) : absl::OkStatus();
  }
  absl::Status Leave(int number) {
    PD_ASSIGN_OR_RETURN(const std::string kept, DropOut(a_.dropout, x_, c_));
    PD_ASSIGN_OR_RETURN(x_, c_->Binary("elementwise_add", residual_, kept));
    return a_.normalize_before ? absl::OkStatus() : Normalize(number);
  }

  // `reads` without a query: x.
  absl::Status Attention(const char* name, size_t part, AttentionReads reads,
                         AttentionResult* result) {
    const LayerContext::Sublayer sublayer(c_, "multi_head_attention", name);
    reads.query = x_;
    if (reads.key.empty() && !reads.static_cache.given())
      reads.key = reads.value = x_;
    AttentionSpec spec;
    spec.embed_dim = spec.kdim = spec.vdim = a_.d_model;
    spec.num_heads = a_.nhead;
    spec.dropout = a_.attn_dropout;
    spec.weight = &a_.weight_attr[part];
    spec.bias = a_.bias ? &a_.bias_attr[part] : nullptr;
    PD_ASSIGN_OR_RETURN(*result, Attend(spec, reads, c_));
    x_ = result->out;
    return absl::OkStatus();
  }

  absl::Status Matrices() {
    PD_RETURN_IF_ERROR(Matrix("linear1", a_.d_model, a_.dim_feedforward));
    PD_ASSIGN_OR_RETURN(x_,
                        AppendActivation(c_, x_, a_.activation, "activation"));
    PD_ASSIGN_OR_RETURN(x_, DropOut(a_.act_dropout, x_, c_));
    return Matrix("linear2", a_.dim_feedforward, a_.d_model);
  }

  const std::string& x() const { return x_; }

 private:
  absl::Status Normalize(int number) {
    const LayerContext::Sublayer norm(c_, "layer_norm",
                                      absl::StrCat("norm", number));
    job::LayerNorm p;
    p.set_epsilon(a_.layer_norm_eps);
    PD_ASSIGN_OR_RETURN(x_, NormalizeLayer(p, {x_, ""}, c_));
    return absl::OkStatus();
  }

  absl::Status Matrix(const char* name, int64_t in, int64_t out) {
    const LayerContext::Sublayer linear(c_, "linear", name);
    PD_ASSIGN_OR_RETURN(x_, Affine({in, out, &a_.weight_attr.back(),
                                    a_.bias ? &a_.bias_attr.back() : nullptr},
                                   x_, c_));
    return absl::OkStatus();
  }

  const LayerArguments& a_;
  std::string x_, residual_;
  LayerContext* c_;
};

// One layer; the decoder's where `decodes`.
absl::StatusOr<LayerResult> MakeLayer(const LayerArguments& a, bool decodes,
                                      const LayerState& state,
                                      const std::string& x, LayerContext* c) {
  LayerResult result;
  LayerMaker layer(a, x, c);
  int part = 1;
  PD_RETURN_IF_ERROR(layer.Enter(part));
  AttentionReads self;
  self.mask = state.mask;
  self.cache = state.cache;
  PD_RETURN_IF_ERROR(layer.Attention("self_attn", 0, self, &result.self));
  PD_RETURN_IF_ERROR(layer.Leave(part++));
  if (decodes) {
    PD_RETURN_IF_ERROR(layer.Enter(part));
    AttentionReads cross;
    cross.mask = state.memory_mask;
    cross.static_cache = state.static_cache;
    if (!cross.static_cache.given()) cross.key = cross.value = state.memory;
    PD_RETURN_IF_ERROR(layer.Attention("cross_attn", 1, cross, &result.cross));
    PD_RETURN_IF_ERROR(layer.Leave(part++));
  }
  PD_RETURN_IF_ERROR(layer.Enter(part));
  PD_RETURN_IF_ERROR(layer.Matrices());
  PD_RETURN_IF_ERROR(layer.Leave(part));
  result.out = layer.x();
  return result;
}

// Keys and values that layers have looked at, one by one and all by one name.
class Caches {
 public:
  Caches(bool decodes, LayerContext* c) : decodes_(decodes), c_(c) {}

  void Add(const LayerResult& made, const std::string& number) {
    AddOf(made.self, number, "", &self_);
    if (decodes_) AddOf(made.cross, number, "static_", &cross_);
  }
  void Finish() {
    c_->AddGroup("cache", std::move(self_));
    if (decodes_) c_->AddGroup("static_cache", std::move(cross_));
  }

 private:
  void AddOf(const AttentionResult& made, const std::string& number,
             const std::string& prefix, std::vector<std::string>* all) {
    c_->AddOutput(absl::StrCat(prefix, "k", number), made.k);
    c_->AddOutput(absl::StrCat(prefix, "v", number), made.v);
    all->insert(all->end(), {made.k, made.v});
  }

  const bool decodes_;
  LayerContext* c_;
  std::vector<std::string> self_, cross_;
};

// The decoder's second input, which a static cache makes superfluous.
absl::Status ReadMemory(int64_t d_model, LayerContext* c, std::string* memory) {
  const bool cached = !c->AllNamed("static_cache").empty();
  if (c->input_count() < 2)
    return cached ? absl::OkStatus()
                  : InvalidArgument(
                        "'%s' reads two inputs, tgt and memory (with "
                        "'static_cache' memory is not needed); it names one",
                        c->kind());
  if (cached)
    return InvalidArgument(
        "'static_cache' stands for memory; name one input, tgt");
  *memory = c->input(1);
  return SequenceWidth(c->read(1), &d_model, "d_model", *c).status();
}

absl::StatusOr<std::string> BuildEncoderLayer(LayerContext* c) {
  const auto& p = c->layer().transformer_encoder_layer();
  PD_ASSIGN_OR_RETURN(const LayerArguments a, ReadArguments(p, 2, *c));
  LayerState state;
  PD_ASSIGN_OR_RETURN(state.mask, AdditiveMask(c->Named("src_mask"), c));
  PD_ASSIGN_OR_RETURN(const auto cache, ReadCaches("cache", 1, *c));
  state.cache = cache[0];
  PD_ASSIGN_OR_RETURN(const LayerResult made,
                      MakeLayer(a, false, state, c->input(), c));
  Caches caches(false, c);
  caches.Add(made, "");
  caches.Finish();
  return made.out;
}

absl::StatusOr<std::string> BuildDecoderLayer(LayerContext* c) {
  const auto& p = c->layer().transformer_decoder_layer();
  PD_ASSIGN_OR_RETURN(const LayerArguments a, ReadArguments(p, 3, *c));
  LayerState state;
  PD_RETURN_IF_ERROR(ReadMemory(a.d_model, c, &state.memory));
  PD_ASSIGN_OR_RETURN(state.mask, AdditiveMask(c->Named("tgt_mask"), c));
  PD_ASSIGN_OR_RETURN(state.memory_mask,
                      AdditiveMask(c->Named("memory_mask"), c));
  PD_ASSIGN_OR_RETURN(const auto cache, ReadCaches("cache", 1, *c));
  PD_ASSIGN_OR_RETURN(const auto fixed, ReadCaches("static_cache", 1, *c));
  state.cache = cache[0];
  state.static_cache = fixed[0];
  PD_ASSIGN_OR_RETURN(const LayerResult made,
                      MakeLayer(a, true, state, c->input(), c));
  Caches caches(true, c);
  caches.Add(made, "");
  caches.Finish();
  return made.out;
}

// Layers on top of each other and what stands around them.
struct Stack {
  LayerArguments arguments;
  int layers = 0;
  bool decodes = false;
  const job::LayerNorm* norm = nullptr;  // null: none
  LayerState state;                      // masks and memory of all layers
  std::vector<KeysValues> caches, static_caches;
  bool shows_caches = true;  // as further results
};

absl::StatusOr<std::string> MakeStack(const Stack& stack, std::string x,
                                      LayerContext* c) {
  std::string norm_name;  // PaddlePaddle is given it with the first layer
  Caches caches(stack.decodes, c);
  for (int i = 0; i < stack.layers; ++i) {
    const LayerContext::Sublayer sublayer(c, "layer",
                                          absl::StrCat("layers.", i));
    LayerState state = stack.state;
    state.cache = stack.caches[static_cast<size_t>(i)];
    state.static_cache = stack.static_caches[static_cast<size_t>(i)];
    PD_ASSIGN_OR_RETURN(const LayerResult made,
                        MakeLayer(stack.arguments, stack.decodes, state, x, c));
    if (stack.shows_caches) caches.Add(made, absl::StrCat(i));
    x = made.out;
    if (i == 0 && stack.norm != nullptr)
      norm_name = c->CountInPaddle("layer_norm");
  }
  if (stack.shows_caches) caches.Finish();
  if (stack.norm == nullptr) return x;
  const LayerContext::Sublayer norm(c, "layer_norm", "norm");
  c->NameInPaddle(norm_name);
  return NormalizeLayer(*stack.norm, {x, "the last layer"}, c);
}

// Masks and caches inside `encoder_layer` would be the same for all layers.
template <typename Message>
absl::Status NothingRead(const Message& layer, const char* field) {
  const google::protobuf::Reflection* r = layer.GetReflection();
  for (int i = 0; i < layer.GetDescriptor()->field_count(); ++i) {
    const auto* f = layer.GetDescriptor()->field(i);
    if (f->options().GetExtension(job::rule).reads() &&
        (f->is_repeated() ? r->FieldSize(layer, f) > 0 : r->HasField(layer, f)))
      return InvalidArgument("'%s' stands beside '%s', not inside it",
                             f->name(), field);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BuildEncoder(LayerContext* c) {
  const job::TransformerEncoder& p = c->layer().transformer_encoder();
  PD_RETURN_IF_ERROR(NothingRead(p.encoder_layer(), "encoder_layer"));
  Stack stack;
  PD_ASSIGN_OR_RETURN(stack.arguments, ReadArguments(p.encoder_layer(), 2, *c));
  stack.layers = p.num_layers();
  stack.norm = p.has_norm() ? &p.norm() : nullptr;
  PD_ASSIGN_OR_RETURN(stack.state.mask, AdditiveMask(c->Named("src_mask"), c));
  PD_ASSIGN_OR_RETURN(stack.caches, ReadCaches("cache", stack.layers, *c));
  stack.static_caches.resize(stack.caches.size());
  return MakeStack(stack, c->input(), c);
}

absl::StatusOr<std::string> BuildDecoder(LayerContext* c) {
  const job::TransformerDecoder& p = c->layer().transformer_decoder();
  PD_RETURN_IF_ERROR(NothingRead(p.decoder_layer(), "decoder_layer"));
  Stack stack;
  stack.decodes = true;
  PD_ASSIGN_OR_RETURN(stack.arguments, ReadArguments(p.decoder_layer(), 3, *c));
  stack.layers = p.num_layers();
  stack.norm = p.has_norm() ? &p.norm() : nullptr;
  PD_RETURN_IF_ERROR(
      ReadMemory(stack.arguments.d_model, c, &stack.state.memory));
  PD_ASSIGN_OR_RETURN(stack.state.mask, AdditiveMask(c->Named("tgt_mask"), c));
  PD_ASSIGN_OR_RETURN(stack.state.memory_mask,
                      AdditiveMask(c->Named("memory_mask"), c));
  PD_ASSIGN_OR_RETURN(stack.caches, ReadCaches("cache", stack.layers, *c));
  PD_ASSIGN_OR_RETURN(stack.static_caches,
                      ReadCaches("static_cache", stack.layers, *c));
  return MakeStack(stack, c->input(), c);
}

// `given` for the encoder's two parts or the decoder's three.
std::vector<job::ParamAttr> OfTransformer(const Attrs& given, bool decodes) {
  const size_t parts = decodes ? 3 : 2;
  if (given.size() <= 1) return ForAll(given, parts);
  std::vector<job::ParamAttr> all(parts, given[0]);
  all.back() = given[given.size() - 1];
  if (decodes) all[1] = given[given.size() - 2];
  return all;
}

absl::StatusOr<std::string> BuildTransformer(LayerContext* c) {
  const job::Transformer& p = c->layer().transformer();
  const int64_t d_model = p.d_model();
  for (size_t i = 0; i < 2; ++i)
    PD_RETURN_IF_ERROR(
        SequenceWidth(c->read(i), &d_model, "d_model", *c).status());
  PD_RETURN_IF_ERROR(CheckHeads(d_model, "d_model", p.nhead(), "nhead"));
  job::LayerNorm norm;
  norm.set_epsilon(p.layer_norm_eps());
  Stack encoder, decoder;
  PD_ASSIGN_OR_RETURN(encoder.state.mask,
                      AdditiveMask(c->Named("src_mask"), c));
  PD_ASSIGN_OR_RETURN(decoder.state.mask,
                      AdditiveMask(c->Named("tgt_mask"), c));
  PD_ASSIGN_OR_RETURN(decoder.state.memory_mask,
                      AdditiveMask(c->Named("memory_mask"), c));
  encoder.layers = p.num_encoder_layers();
  decoder.layers = p.num_decoder_layers();
  decoder.decodes = true;
  for (Stack* stack : {&encoder, &decoder}) {
    stack->arguments = CommonArguments(p);
    stack->arguments.d_model = d_model;
    stack->arguments.weight_attr =
        OfTransformer(p.weight_attr(), stack->decodes);
    stack->arguments.bias_attr = OfTransformer(p.bias_attr(), stack->decodes);
    stack->norm = &norm;
    stack->caches.resize(static_cast<size_t>(stack->layers));
    stack->static_caches.resize(static_cast<size_t>(stack->layers));
  }
  encoder.shows_caches = false;
  {
    const LayerContext::Sublayer sublayer(c, "encoder", "encoder");
    PD_ASSIGN_OR_RETURN(decoder.state.memory,
                        MakeStack(encoder, c->input(0), c));
  }
  c->AddOutput("memory", decoder.state.memory);
  const LayerContext::Sublayer sublayer(c, "decoder", "decoder");
  return MakeStack(decoder, c->input(1), c);
}

}  // namespace

void AddTransformerLayers(LayerTable* table) {
  (*table)[job::Layer::kTransformerEncoderLayer] = {BuildEncoderLayer};
  (*table)[job::Layer::kTransformerDecoderLayer] = {BuildDecoderLayer, 1, 2};
  (*table)[job::Layer::kTransformerEncoder] = {BuildEncoder};
  (*table)[job::Layer::kTransformerDecoder] = {BuildDecoder, 1, 2};
  (*table)[job::Layer::kTransformer] = {BuildTransformer, 2, 2};
}

}  // namespace pd
