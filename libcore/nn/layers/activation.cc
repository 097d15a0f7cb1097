// SPDX-License-Identifier: Apache-2.0
// Activations: one op each, but for prelu, which has a parameter, and glu.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

struct OpCall {
  const char* type;
  std::map<std::string, Attribute> attrs;
};

float F(double value) { return static_cast<float>(value); }

// Which op an activation is.
using L = job::Layer;
struct Activation {
  int kind;
  OpCall (*call)(const L& layer);
};
const Activation kActivations[] = {
    {L::kRelu,
     [](const L&) {
       return OpCall{"relu", {}};
     }},
    {L::kRelu6,
     [](const L&) {
       return OpCall{"relu6", {}};
     }},
    {L::kLeakyRelu,
     [](const L& l) {
       return OpCall{"leaky_relu",
                     {{"alpha", F(l.leaky_relu().negative_slope())}}};
     }},
    {L::kSigmoid,
     [](const L&) {
       return OpCall{"sigmoid", {}};
     }},
    {L::kTanh,
     [](const L&) {
       return OpCall{"tanh", {}};
     }},
    {L::kGelu,
     [](const L& l) {
       return OpCall{"gelu", {{"approximate", l.gelu().approximate()}}};
     }},
    {L::kSilu,
     [](const L&) {
       return OpCall{"silu", {}};
     }},
    {L::kSwish,
     [](const L&) {
       return OpCall{"swish", {}};
     }},
    {L::kHardswish,
     [](const L&) {
       return OpCall{"hard_swish",
                     {{"threshold", 6.0f}, {"scale", 6.0f}, {"offset", 3.0f}}};
     }},
    // PaddlePaddle's own rounding of 1/6.
    {L::kHardsigmoid,
     [](const L&) {
       return OpCall{"hard_sigmoid", {{"slope", 0.1666667f}, {"offset", 0.5f}}};
     }},
    {L::kSoftmax,
     [](const L& l) {
       return OpCall{"softmax", {{"axis", int32_t{l.softmax().axis()}}}};
     }},
    {L::kSoftmax2D,
     [](const L&) {
       return OpCall{"softmax", {{"axis", int32_t{-3}}}};
     }},
    {L::kLogSoftmax,
     [](const L& l) {
       return OpCall{"log_softmax",
                     {{"axis", int32_t{l.log_softmax().axis()}}}};
     }},
    {L::kElu,
     [](const L& l) {
       return OpCall{"elu", {{"alpha", F(l.elu().alpha())}}};
     }},
    {L::kCelu,
     [](const L& l) {
       return OpCall{"celu", {{"alpha", F(l.celu().alpha())}}};
     }},
    {L::kSelu,
     [](const L& l) {
       return OpCall{
           "selu",
           {{"scale", F(l.selu().scale())}, {"alpha", F(l.selu().alpha())}}};
     }},
    {L::kSoftplus,
     [](const L& l) {
       return OpCall{"softplus",
                     {{"beta", F(l.softplus().beta())},
                      {"threshold", F(l.softplus().threshold())}}};
     }},
    {L::kSoftshrink,
     [](const L& l) {
       return OpCall{"softshrink", {{"lambda", F(l.softshrink().threshold())}}};
     }},
    {L::kHardshrink,
     [](const L& l) {
       return OpCall{"hard_shrink",
                     {{"threshold", F(l.hardshrink().threshold())}}};
     }},
    {L::kHardtanh,
     [](const L& l) {
       return OpCall{"brelu",
                     {{"t_min", F(l.hardtanh().min())},
                      {"t_max", F(l.hardtanh().max())}}};
     }},
    {L::kThresholdedRelu,
     [](const L& l) {
       return OpCall{"thresholded_relu",
                     {{"threshold", F(l.thresholded_relu().threshold())}}};
     }},
    {L::kSoftsign,
     [](const L&) {
       return OpCall{"softsign", {}};
     }},
    {L::kTanhshrink,
     [](const L&) {
       return OpCall{"tanh_shrink", {}};
     }},
    {L::kLogSigmoid,
     [](const L&) {
       return OpCall{"logsigmoid", {}};
     }},
    {L::kMish,
     [](const L&) {
       return OpCall{"mish", {{"threshold", 20.0f}}};
     }},
    {L::kMaxout,
     [](const L& l) {
       return OpCall{
           "maxout",
           {{"groups", l.maxout().groups()}, {"axis", l.maxout().axis()}}};
     }},
};

const Activation* FindActivation(int kind) {
  for (const Activation& activation : kActivations)
    if (activation.kind == kind) return &activation;
  return nullptr;
}

// Arguments that PaddlePaddle's functions refuse before their ops do.
absl::Status CheckArguments(const L& l) {
  if (l.has_celu() && l.celu().alpha() == 0)
    return InvalidArgument("'alpha' is 0; celu divides by it");
  if (l.has_hardtanh() && l.hardtanh().min() > l.hardtanh().max())
    return InvalidArgument("'min' is %g and 'max' is %g; expected min <= max",
                           l.hardtanh().min(), l.hardtanh().max());
  return absl::OkStatus();
}

absl::StatusOr<std::string> BuildActivation(LayerContext* c) {
  PD_RETURN_IF_ERROR(CheckArguments(c->layer()));
  if (c->layer().has_softmax2d())
    PD_RETURN_IF_ERROR(c->ExpectRank(3, 4, "images [N, C, H, W] or [C, H, W]"));
  OpCall call = FindActivation(c->layer().kind_case())->call(c->layer());
  return c->Unary(call.type, c->input(), std::move(call.attrs));
}

absl::StatusOr<std::string> BuildPRelu(LayerContext* c) {
  const job::PReLU& p = c->layer().prelu();
  const bool channels_last = p.data_format() != 0;
  if (p.num_parameters() > 1) {
    PD_RETURN_IF_ERROR(c->ExpectRank(2, 5, "2 to 5 axes"));
    const int64_t given = p.num_parameters();
    PD_RETURN_IF_ERROR(c->Extent(channels_last ? -1 : 1, &given,
                                 "input channels", "num_parameters")
                           .status());
  }
  PD_ASSIGN_OR_RETURN(const std::string alpha,
                      c->Weight(p.weight_attr(), {p.num_parameters()},
                                ConstantInitializer(p.init()), "_weight"));
  OpDesc op;
  op.type = "prelu";
  op.SetInput("X", {c->input()});
  op.SetInput("Alpha", {alpha});
  op.attrs = {{"mode", std::string(p.num_parameters() > 1 ? "channel" : "all")},
              {"data_format", std::string(channels_last ? "NHWC" : "NCHW")}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildRRelu(LayerContext* c) {
  const job::RReLU& p = c->layer().rrelu();
  if (p.lower() > p.upper())
    return InvalidArgument(
        "'lower' is %g and 'upper' is %g; expected lower <= upper", p.lower(),
        p.upper());
  OpDesc op;
  op.type = "rrelu";
  op.SetInput("X", {c->input()});
  op.attrs = {
      {"lower", F(p.lower())}, {"upper", F(p.upper())}, {"is_test", false}};
  return c->Append(std::move(op), {"Out", "Noise"});
}

absl::StatusOr<std::string> BuildGumbelSoftmax(LayerContext* c) {
  const job::GumbelSoftmax& p = c->layer().gumbel_softmax();
  PD_RETURN_IF_ERROR(
      NormalizeAxis(p.axis(), c->shape().size(), "axis").status());
  OpDesc op;
  op.type = "gumbel_softmax";
  op.SetInput("X", {c->input()});
  op.attrs = {{"temperature", F(p.temperature())},
              {"hard", p.hard()},
              {"axis", int32_t{p.axis()}}};
  return c->Append(std::move(op), {"Out", "Soft"});
}

// The first half times the sigmoid of the second.
absl::StatusOr<std::string> BuildGlu(LayerContext* c) {
  const int rank = static_cast<int>(c->shape().size());
  const int axis = c->layer().glu().axis();
  if (axis < -rank || axis >= rank)
    return InvalidArgument("'axis' is %d; the input has %d axes", axis, rank);
  PD_ASSIGN_OR_RETURN(const int64_t extent,
                      c->Extent(axis, nullptr, "values", "axis"));
  if (extent % 2 != 0) return c->Misfit("an even extent of the axis");
  OpDesc op;
  op.type = "split";
  op.SetInput("X", {c->input()});
  const std::string first = c->main()->UniqueTemporary("split");
  const std::string second = c->main()->UniqueTemporary("split");
  op.SetOutput("Out", {first, second});
  op.attrs = {{"num", int32_t{2}},
              {"sections", Ints()},
              {"axis", int32_t{axis < 0 ? axis + rank : axis}}};
  const absl::Status split = c->main()->Append(std::move(op));
  if (!split.ok()) return Annotate(split, c->Described());
  PD_ASSIGN_OR_RETURN(const std::string gate, c->Unary("sigmoid", second));
  return c->Binary("elementwise_mul", first, gate);
}

// "gelu" and what stands behind it, "{ approximate: true }".
absl::Status ReadActivation(absl::string_view arguments,
                            const google::protobuf::FieldDescriptor* kind,
                            const char* field, L* layer) {
  google::protobuf::Message* message =
      layer->GetReflection()->MutableMessage(layer, kind);
  const std::string place = absl::StrCat("'", field, "'");
  if (!arguments.empty()) {
    Places places;
    PD_RETURN_IF_ERROR(
        ReadTextValue(arguments, kind, kind->name(), place, layer, &places));
  }
  return Annotate(CheckRules(*message, kind->name()), place);
}

}  // namespace

absl::StatusOr<std::string> AppendActivation(LayerContext* c,
                                             const std::string& x,
                                             const std::string& text,
                                             const char* field) {
  const size_t brace = std::min(text.find('{'), text.size());
  const absl::string_view name =
      absl::StripAsciiWhitespace(absl::string_view(text).substr(0, brace));
  const auto* type = L::descriptor();
  std::vector<std::string> known;
  for (const Activation& activation : kActivations) {
    const auto* kind = type->FindFieldByNumber(activation.kind);
    known.push_back(kind->name());
    if (kind->name() != std::string(name)) continue;
    L layer;
    PD_RETURN_IF_ERROR(ReadActivation(absl::string_view(text).substr(brace),
                                      kind, field, &layer));
    PD_RETURN_IF_ERROR(CheckArguments(layer));
    OpCall call = activation.call(layer);
    return c->Unary(call.type, x, std::move(call.attrs));
  }
  const std::string nearest = Nearest(std::string(name), known);
  return InvalidArgument(
      "'%s' is '%s'; it takes an activation's name, like relu%s", field, text,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

void AddActivations(LayerTable* table) {
  for (const Activation& activation : kActivations)
    (*table)[activation.kind] = {BuildActivation};
  (*table)[L::kPrelu] = {BuildPRelu};
  (*table)[L::kRrelu] = {BuildRRelu};
  (*table)[L::kGlu] = {BuildGlu};
  (*table)[L::kGumbelSoftmax] = {BuildGumbelSoftmax};
}

}  // namespace pd
