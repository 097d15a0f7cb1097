// SPDX-License-Identifier: Apache-2.0
// crf_decoding, viterbi_decoder, ctc_greedy_decoder: the best sequence of a
// network's scores. Nothing is differentiable here.
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

// [N, T, classes], float32; gives the classes.
absl::StatusOr<int64_t> CheckScores(const char* classes, LayerContext* c) {
  PD_RETURN_IF_ERROR(c->ExpectRank(
      3, 3, absl::StrCat("scores [N, T, ", classes, "]").c_str()));
  if (c->dtype() != DType::kFloat32)
    return c->Misfit(absl::StrCat("float32, not ", Name(c->dtype())));
  return c->Extent(2, nullptr, classes, classes);
}

// The lengths that `field` names, int64 of this shape ([N] or [N, 1]).
absl::StatusOr<std::string> Lengths(const char* field, int rank,
                                    LayerContext* c) {
  const LayerInput& lengths = *c->Named(field);
  const Shape shape = c->ShapeOf(lengths.variable);
  if (!IsInteger(c->TypeOf(lengths.variable)) ||
      (shape.size() != 1 && (shape.size() != 2 || shape[1] != 1)))
    return c->Misfit(absl::StrCat("integers [N] for '", field, "'"), lengths);
  OpChain chain(c->main());
  std::string made = chain.Cast(lengths.variable, DType::kInt64);
  if (static_cast<int>(shape.size()) != rank)
    made = rank == 1 ? chain.Squeeze(made, 1) : chain.Unsqueeze(made, 1);
  return chain.Give(made);
}

absl::StatusOr<std::string> BuildCRFDecoding(LayerContext* c) {
  const job::CRFDecoding& p = c->layer().crf_decoding();
  PD_ASSIGN_OR_RETURN(const int64_t tags, CheckScores("tags", c));
  PD_ASSIGN_OR_RETURN(const std::string length, Lengths("length", 1, c));
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(p.param_attr(), {tags + 2, tags}, XavierUniformInitializer()));
  OpDesc op;
  op.type = "crf_decoding";
  op.SetInput("Emission", {c->input()});
  op.SetInput("Transition", {weight});
  op.SetInput("Length", {length});
  return c->Append(std::move(op), {"ViterbiPath"});
}

absl::StatusOr<std::string> BuildViterbiDecoder(LayerContext* c) {
  const job::ViterbiDecoder& p = c->layer().viterbi_decoder();
  PD_ASSIGN_OR_RETURN(const int64_t tags, CheckScores("tags", c));
  PD_ASSIGN_OR_RETURN(const std::string lengths, Lengths("lengths", 1, c));
  PD_ASSIGN_OR_RETURN(const std::string weight,
                      c->Weight(p.transitions_attr(), {tags, tags},
                                XavierUniformInitializer(), "transitions"));
  OpDesc op;
  op.type = "viterbi_decode";
  op.SetInput("Input", {c->input()});
  op.SetInput("Transition", {weight});
  op.SetInput("Length", {lengths});
  op.attrs["include_bos_eos_tag"] = p.include_bos_eos_tag();
  const std::string scores =
      absl::StrCat(c->main()->UniqueTemporary("viterbi_decode"), ".scores");
  op.SetOutput("Scores", {scores});
  PD_ASSIGN_OR_RETURN(const std::string path,
                      c->Append(std::move(op), {"Path"}));
  c->AddOutput("scores", scores);
  return path;
}

absl::StatusOr<std::string> BuildCTCGreedyDecoder(LayerContext* c) {
  const job::CTCGreedyDecoder& p = c->layer().ctc_greedy_decoder();
  PD_ASSIGN_OR_RETURN(const int64_t classes, CheckScores("classes", c));
  if (p.blank() >= classes)
    return InvalidArgument("'blank' is %d; there are %d classes", p.blank(),
                           classes);
  PD_ASSIGN_OR_RETURN(const std::string length, Lengths("input_length", 2, c));
  PD_ASSIGN_OR_RETURN(
      const std::string best,
      c->Unary("arg_max", c->input(),
               {{"axis", int64_t{2}},
                {"keepdims", false},
                {"flatten", false},
                {"dtype", static_cast<int32_t>(DType::kInt64)}}));
  OpDesc op;
  op.type = "ctc_align";
  op.SetInput("Input", {best});
  op.SetInput("InputLength", {length});
  op.attrs = {{"blank", p.blank()},
              {"merge_repeated", true},
              {"padding_value", p.padding_value()}};
  const std::string remain =
      absl::StrCat(c->main()->UniqueTemporary("ctc_align"), ".length");
  op.SetOutput("OutputLength", {remain});
  PD_ASSIGN_OR_RETURN(const std::string labels,
                      c->Append(std::move(op), {"Output"}));
  c->AddOutput("length", remain);
  return labels;
}

}  // namespace

void AddDecodeLayers(LayerTable* table) {
  (*table)[job::Layer::kCrfDecoding] = {BuildCRFDecoding};
  (*table)[job::Layer::kViterbiDecoder] = {BuildViterbiDecoder};
  (*table)[job::Layer::kCtcGreedyDecoder] = {BuildCTCGreedyDecoder};
}

}  // namespace pd
