// SPDX-License-Identifier: Apache-2.0
// beam_search: PaddlePaddle's BeamSearchDecoder under dynamic_decode. All steps
// have ops of their own. When every sequence has ended, a further step takes
// end_token at no cost and keeps the order, so the steps that PaddlePaddle
// would not run only lengthen the result.
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/recurrent.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;

// PaddlePaddle's logarithm of what is impossible.
constexpr double kNever = -1e9;

class BeamSearch {
 public:
  explicit BeamSearch(LayerContext* c)
      : c_(c),
        p_(c->layer().beam_search()),
        cell_("cell", p_.cell(), c),
        ops_(c->main()),
        beam_(p_.beam_size()) {}

  absl::StatusOr<std::string> Build() {
    PD_RETURN_IF_ERROR(Begin());
    for (int step = 0; step <= p_.max_step_num(); ++step) {
      PD_ASSIGN_OR_RETURN(const std::string logits, Logits());
      PD_RETURN_IF_ERROR(Choose(logits));
    }
    return End();
  }

 private:
  // The error of the chain's ops, said to be this layer's.
  absl::Status Check() const {
    return Annotate(ops_.Give("").status(), c_->Described());
  }

  // [N, ...] -> [N * beam, ...], each example `beam` times.
  std::string Tile(const std::string& x) {
    return ops_.Unary("repeat_interleave", x,
                      {{"Repeats", int32_t{beam_}}, {"dim", int32_t{0}}});
  }

  // Numbers [N, width], all `value`.
  std::string Everywhere(int width, DType dtype, double value) {
    return ops_.Op("fill_constant_batch_size_like",
                   {{"Input", c_->AllNamed("inits")[0].variable}}, {"Out"},
                   {{"shape", std::vector<int32_t>{-1, width}},
                    {"dtype", static_cast<int32_t>(dtype)},
                    {"value", static_cast<float>(value)},
                    {"str_value", absl::StrCat(static_cast<int64_t>(value))},
                    {"input_dim_idx", int32_t{0}},
                    {"output_dim_idx", int32_t{0}}});
  }

  absl::Status Begin() {
    const std::vector<LayerInput>& inits = c_->AllNamed("inits");
    if (cell_.states() > 0 && cell_.states() != inits.size())
      return InvalidArgument("'inits' names %d; the cell has %d states",
                             inits.size(), cell_.states());
    std::vector<LayerInput> kwargs = c_->AllNamed("kwargs");
    for (const char* field : {"inits", "kwargs"})
      for (const LayerInput& one : c_->AllNamed(field))
        if (c_->ShapeOf(one.variable).empty())
          return c_->Misfit(absl::StrCat("[N, ...] for '", field, "'"), one);
    for (const LayerInput& init : inits) states_.push_back(Tile(init.variable));
    for (LayerInput& one : kwargs) one.variable = Tile(one.variable);
    ids_ = Everywhere(beam_, DType::kInt64, p_.start_token());
    lengths_ = Everywhere(beam_, DType::kInt64, 0);
    finished_ = Everywhere(beam_, DType::kFloat32, 0);
    // All sequences begin alike: only the first one counts.
    std::vector<double> first(static_cast<size_t>(beam_), kNever);
    first[0] = 0;
    log_probs_ =
        ops_.Add(finished_, ops_.Values({beam_}, DType::kFloat32, first));
    // Where an example's sequences begin among those of all.
    // (Not by `exclusive`: PaddlePaddle's executor runs it in place, to zeros.)
    rows_ = ops_.Scale(ops_.Unary("cumsum", Everywhere(1, DType::kInt64, beam_),
                                  {{"axis", int32_t{0}}}),
                       1, -beam_);
    PD_RETURN_IF_ERROR(Check());
    cell_.set_kwargs(std::move(kwargs));
    return absl::OkStatus();
  }

  // [N, beam, ...] -> [N * beam, ...]
  std::string Merge(const std::string& x) {
    return ops_.Op("flatten_contiguous_range", {{"X", x}}, {"Out", "XShape"},
                   {{"start_axis", int32_t{0}}, {"stop_axis", int32_t{1}}});
  }

  // The result of one of the layer's fields on `x`; x itself without the field.
  absl::StatusOr<std::string> Through(const char* field, bool given,
                                      const std::string& x) {
    if (!given) return x;
    LayerReads reads;
    reads.inputs.push_back({x, absl::StrCat("a step of ", c_->Called())});
    PD_ASSIGN_OR_RETURN(LayerResults made, c_->Part(field, std::move(reads)));
    return std::move(made.first.variable);
  }

  // One step of the cell: logits [N, beam, words].
  absl::StatusOr<std::string> Logits() {
    PD_ASSIGN_OR_RETURN(const std::string embedded,
                        Through("embedding_fn", p_.has_embedding_fn(), ids_));
    const std::string input = Merge(embedded);
    PD_RETURN_IF_ERROR(Check());
    PD_ASSIGN_OR_RETURN(StepCell::Result made, cell_.Step(input, states_));
    states_ = std::move(made.states);
    const Shape& shape = c_->ShapeOf(made.output);
    std::vector<int32_t> split = {-1, beam_};
    for (size_t i = 1; i < shape.size(); ++i) {
      if (shape[i] < 0)
        return InvalidArgument("the cell gives %s; only N may be unknown",
                               ToString(shape));
      split.push_back(static_cast<int32_t>(shape[i]));
    }
    const std::string output = ops_.Reshape(made.output, std::move(split));
    PD_RETURN_IF_ERROR(Check());
    PD_ASSIGN_OR_RETURN(std::string logits,
                        Through("output_fn", p_.has_output_fn(), output));
    return logits;
  }

  absl::StatusOr<int32_t> CheckLogits(const std::string& logits) const {
    const Shape& shape = c_->ShapeOf(logits);
    if (shape.size() != 3 || shape[2] < 1 ||
        c_->TypeOf(logits) != DType::kFloat32)
      return InvalidArgument(
          "%s gives %s %s; expected logits float32 [N, %d, words]",
          p_.has_output_fn() ? "'output_fn'" : "the cell",
          Name(c_->TypeOf(logits)), ToString(shape), beam_);
    if (p_.end_token() >= shape[2])
      return InvalidArgument("'end_token' is %d; there are logits of %d words",
                             p_.end_token(), shape[2]);
    if (shape[2] > std::numeric_limits<int32_t>::max() / beam_)
      return InvalidArgument("%d words for %d sequences are too many", shape[2],
                             beam_);
    return static_cast<int32_t>(shape[2]);
  }

  // Takes the likeliest `beam` of all continuations.
  absl::Status Choose(const std::string& logits) {
    PD_ASSIGN_OR_RETURN(const int32_t words, CheckLogits(logits));
    const std::string step =
        ops_.Unary("log_softmax", logits, {{"axis", int32_t{-1}}});
    // A sequence that has ended goes on with end_token only, at no cost.
    if (ended_.empty()) {
      std::vector<double> costs(static_cast<size_t>(words), kNever);
      costs[static_cast<size_t>(p_.end_token())] = 0;
      ended_ = ops_.Values({words}, DType::kFloat32, costs);
    }
    const std::string open = ops_.Unsqueeze(ops_.Scale(finished_, -1, 1), 2);
    const std::string masked = ops_.Add(
        ops_.Mul(step, open), ops_.Mul(ops_.Unsqueeze(finished_, 2), ended_));
    const std::string scores = ops_.Reshape(
        ops_.Add(masked, ops_.Unsqueeze(log_probs_, 2)), {-1, beam_ * words});
    const OpChain::Continuations best =
        ops_.BestContinuations(scores, beam_, words);
    log_probs_ = best.scores;
    ids_ = best.words;
    all_ids_.push_back(ids_);
    all_parents_.push_back(best.parents);
    Follow(best.parents);
    return Check();
  }

  // States, lengths and ends are those of the sequences that go on.
  void Follow(const std::string& parents) {
    const std::string from = ops_.Reshape(ops_.Add(parents, rows_), {-1});
    for (std::string& state : states_)
      state = ops_.Op("gather", {{"X", state}, {"Index", from}}, {"Out"},
                      {{"axis", int32_t{0}}});
    const auto of_parents = [&](const std::string& x) {
      return ops_.Op("index_sample", {{"X", x}, {"Index", parents}}, {"Out"});
    };
    const std::string before = of_parents(finished_);
    lengths_ = ops_.Add(of_parents(lengths_),
                        ops_.Cast(ops_.Scale(before, -1, 1), DType::kInt64));
    const std::string end =
        ops_.Full({1}, DType::kInt64, static_cast<double>(p_.end_token()));
    finished_ = ops_.Binary(
        "elementwise_max", before,
        ops_.Cast(ops_.Binary("equal", ids_, end), DType::kFloat32));
  }

  std::string Stack(const Names& steps) {
    if (!ops_.ok()) return "";
    OpDesc op;
    op.type = "stack";
    op.SetInput("X", steps);
    op.attrs["axis"] = int32_t{0};
    const std::string name = c_->main()->UniqueTemporary("stack");
    op.SetOutput("Y", {name});
    ops_.Update(c_->main()->Append(std::move(op)));
    return name;
  }

  absl::StatusOr<std::string> End() {
    std::string ids = ops_.Op(
        "gather_tree",
        {{"Ids", Stack(all_ids_)}, {"Parents", Stack(all_parents_)}}, {"Out"});
    if (!p_.output_time_major())
      ids = ops_.Op("transpose2", {{"X", ids}}, {"Out", "XShape"},
                    {{"axis", std::vector<int32_t>{1, 0, 2}}});
    const std::string finished = ops_.Cast(finished_, DType::kBool);
    PD_RETURN_IF_ERROR(Check());
    c_->AddOutput("lengths", lengths_);
    c_->AddOutput("log_probs", log_probs_);
    c_->AddOutput("finished", finished);
    return ids;
  }

  LayerContext* c_;
  const job::BeamSearchDecoder& p_;
  StepCell cell_;
  OpChain ops_;
  const int32_t beam_;
  Names states_;                      // [N * beam, ...]
  std::string ids_, lengths_;         // int64 [N, beam]
  std::string finished_, log_probs_;  // float32 [N, beam]
  std::string rows_;                  // int64 [N, 1]
  std::string ended_;                 // float32 [words]
  Names all_ids_, all_parents_;
};

absl::StatusOr<std::string> BuildBeamSearch(LayerContext* c) {
  return BeamSearch(c).Build();
}

}  // namespace

void AddBeamSearchLayers(LayerTable* table) {
  (*table)[job::Layer::kBeamSearch] = {BuildBeamSearch, 0, 0};
}

}  // namespace pd
