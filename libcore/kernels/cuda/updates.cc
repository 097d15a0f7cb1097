// SPDX-License-Identifier: Apache-2.0
// Updates of parameters, the merged ones too: one kernel over a table of all
// tensors (update.cu). The table is made when the first run knows where
// they are.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {
namespace {

// What a rule keeps: input slots, and those of its outputs.
struct Slots {
  const char *type, *kernel;
  struct {
    const char *in, *out;
  } moments[3];
  const char* powers[2];  // betas'; adam moves them on
};
constexpr Slots kSlots[] = {
    {"sgd", "update_sgd", {}, {}},
    {"momentum", "update_momentum", {{"Velocity", "VelocityOut"}}, {}},
    {"merged_momentum", "update_momentum", {{"Velocity", "VelocityOut"}}, {}},
    {"adam",
     "update_adam",
     {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
     {"Beta1Pow", "Beta2Pow"}},
    {"adamw",
     "update_adam",
     {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
     {"Beta1Pow", "Beta2Pow"}},
    {"merged_adam",
     "update_adam",
     {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
     {"Beta1Pow", "Beta2Pow"}},
    {"rmsprop",
     "update_rmsprop",
     {{"MeanSquare", "MeanSquareOut"},
      {"Moment", "MomentOut"},
      {"MeanGrad", "MeanGradOut"}},
     {}},
    {"adagrad", "update_adagrad", {{"Moment", "MomentOut"}}, {}},
    {"decayed_adagrad",
     "update_decayed_adagrad",
     {{"Moment", "MomentOut"}},
     {}},
    {"adadelta",
     "update_adadelta",
     {{"AvgSquaredGrad", "AvgSquaredGradOut"},
      {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}},
     {}},
    {"adamax",
     "update_adamax",
     {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}},
     {"Beta1Pow"}},
    {"ftrl",
     "update_ftrl",
     {{"SquaredAccumulator", "SquaredAccumOut"},
      {"LinearAccumulator", "LinearAccumOut"}},
     {}},
    {"proximal_gd", "update_proximal_gd", {}, {}},
};

const Slots& SlotsOf(const std::string& type) {
  const Slots* slots = kSlots;
  while (type != slots->type) ++slots;
  return *slots;
}

// The tensors of one parameter.
struct Member {
  Tensor *param, *half = nullptr, *grad, *moments[3] = {}, *powers[2] = {};
  float decay = 0;
};

// momentum's own decay of parameter i, which merged ones hold in lists.
absl::StatusOr<float> DecayOf(const OpDesc& op, size_t i) {
  const auto named = [&](const std::string& method, float coeff) {
    return method == "l2_decay" ? coeff : 0.0f;
  };
  if (op.type == "momentum")
    return named(op.AttrOr<std::string>("regularization_method", ""),
                 op.AttrOr<float>("regularization_coeff", 0.0f));
  if (op.type == "merged_momentum") {
    const auto methods = op.AttrOr<std::vector<std::string>>(
        "regularization_method", std::vector<std::string>());
    const auto coeffs = op.AttrOr<std::vector<float>>("regularization_coeff",
                                                      std::vector<float>());
    if (methods.empty()) return 0.0f;
    if (i >= methods.size() || i >= coeffs.size())
      return Unimplemented("decays that do not fit");
    return named(methods[i], coeffs[i]);
  }
  if (op.type == "adamw" && op.AttrOr("with_decay", false))
    return op.AttrOr<float>("lr_ratio", 1.0f) * op.AttrOr<float>("coeff", 0.0f);
  return 0.0f;
}

// The parameter, or its master in float32, of which it is a rounded copy.
absl::Status ReadParam(BindContext* context, size_t i, Member* member) {
  PD_ASSIGN_OR_RETURN(member->param, InPlace(context, "Param", "ParamOut", i));
  if (context->op().AttrOr("multi_precision", false) &&
      context->Input("MasterParam", i) != nullptr) {
    member->half = member->param;
    PD_ASSIGN_OR_RETURN(member->param,
                        InPlace(context, "MasterParam", "MasterParamOut", i));
    if (member->half->size() != member->param->size())
      return Unimplemented("a master of another size");
    PD_RETURN_IF_ERROR(SameFloats({member->half}));
  }
  member->grad = context->Input("Grad", i);
  if (member->grad == nullptr || member->grad->size() != member->param->size())
    return Unimplemented("'Grad' is missing or has another shape");
  PD_RETURN_IF_ERROR(SameFloats({member->grad}));
  return OnlyFloat32({member->param});
}

absl::StatusOr<Member> ReadMember(BindContext* context, const Slots& slots,
                                  size_t i) {
  Member member;
  PD_RETURN_IF_ERROR(ReadParam(context, i, &member));
  for (int k = 0; k < 3; ++k) {
    const auto& [in, out] = slots.moments[k];
    // rmsprop has its third in a centered update alone.
    if (in == nullptr || (k == 2 && !context->op().AttrOr("centered", false)))
      continue;
    PD_ASSIGN_OR_RETURN(member.moments[k], InPlace(context, in, out, i));
    PD_RETURN_IF_ERROR(OnlyFloat32({member.moments[k]}));
    if (member.moments[k]->size() != member.param->size())
      return Unimplemented("'%s' has another size", in);
  }
  for (int k = 0; k < 2; ++k) {
    if (slots.powers[k] == nullptr) continue;
    member.powers[k] = context->Input(slots.powers[k], i);
    if (slots.powers[1] != nullptr) {
      PD_ASSIGN_OR_RETURN(member.powers[k],
                          InPlace(context, slots.powers[k],
                                  absl::StrCat(slots.powers[k], "Out"), i));
    }
    if (member.powers[k] == nullptr || member.powers[k]->size() != 1)
      return Unimplemented("powers of more than one element");
    PD_RETURN_IF_ERROR(OnlyFloat32({member.powers[k]}));
  }
  PD_ASSIGN_OR_RETURN(member.decay, DecayOf(context->op(), i));
  return member;
}

UpdateArgs ReadAttrs(const OpDesc& op, size_t count) {
  UpdateArgs args{};
  args.count = static_cast<int32_t>(count);
  args.mu = op.AttrOr<float>(op.type == "rmsprop" ? "momentum" : "mu", 0.0f);
  args.decay = op.AttrOr<float>(op.type == "adadelta" ? "rho"
                                : op.type == "ftrl"   ? "lr_power"
                                                      : "decay",
                                0.0f);
  args.l1 = op.AttrOr<float>("l1", 0.0f);
  args.l2 = op.AttrOr<float>("l2", 0.0f);
  args.nesterov = op.AttrOr("use_nesterov", false);
  args.beta1 = op.AttrOr<float>("beta1", 0.9f);
  args.beta2 = op.AttrOr<float>("beta2", 0.999f);
  args.epsilon = op.AttrOr<float>("epsilon", 1e-8f);
  // momentum reads it for selected rows alone.
  args.rescale = op.type == "merged_momentum"
                     ? op.AttrOr<float>("rescale_grad", 1.0f)
                     : 1.0f;
  return args;
}

absl::Status FillTable(const std::vector<Member>& members, CudaDevice* device,
                       void* table) {
  std::vector<UpdateTensor> rows;
  int64_t block = 0;
  for (const Member& m : members) {
    const int64_t n = m.param->size();
    PD_ASSIGN_OR_RETURN(const NumberType grad, NumberTypeOf(m.grad->dtype()));
    NumberType half = NumberType::kFloat32;
    if (m.half != nullptr) {
      PD_ASSIGN_OR_RETURN(half, NumberTypeOf(m.half->dtype()));
    }
    rows.push_back({At(m.param), m.half == nullptr ? nullptr : m.half->raw(),
                    m.grad->raw(), At(m.moments[0]), At(m.moments[1]),
                    At(m.moments[2]), At(m.powers[0]), At(m.powers[1]), n,
                    block, m.decay, grad, half, 0});
    block += (n + kUpdateChunk - 1) / kUpdateChunk;
  }
  return device->ToDevice(table, rows.data(),
                          rows.size() * sizeof(UpdateTensor));
}

absl::StatusOr<Step> BindUpdate(BindContext* context, DeviceBinding* binding) {
  const OpDesc& op = context->op();
  for (const char* slot :
       {"SkipUpdate", "Beta1Tensor", "Beta2Tensor", "EpsilonTensor"})
    if (context->Input(slot) != nullptr)
      return Unimplemented("an input '%s'", slot);
  if (op.AttrOr("use_global_beta_pow", false))
    return Unimplemented("powers that somebody else moves on");
  const Slots& slots = SlotsOf(op.type);
  std::vector<Member> members;
  int64_t blocks = 0;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Member member, ReadMember(context, slots, i));
    if (member.param->size() == 0) return Unimplemented("an empty parameter");
    blocks += (member.param->size() + kUpdateChunk - 1) / kUpdateChunk;
    members.push_back(member);
  }
  Tensor* rate = context->Input("LearningRate");
  for (size_t i = 1; i < context->InputCount("LearningRate"); ++i)
    if (context->Input("LearningRate", i) != rate)
      return Unimplemented("several learning rates");
  if (members.empty() || rate == nullptr || rate->size() != 1)
    return Unimplemented("no parameter, or no learning rate");
  PD_RETURN_IF_ERROR(OnlyFloat32({rate}));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<UpdateArgs>::Find(binding, slots.kernel));
  PD_ASSIGN_OR_RETURN(const auto powers,
                      Starter<UpdateArgs>::Find(binding, "adam_powers"));
  PD_ASSIGN_OR_RETURN(void* const table,
                      binding->Keep(members.size() * sizeof(UpdateTensor)));
  auto filled = std::make_shared<bool>(false);
  const bool moves = slots.powers[1] != nullptr;
  return Step([=, device = binding->device(),
               args = ReadAttrs(op, members.size())](const RunContext&) {
    if (!*filled) PD_RETURN_IF_ERROR(FillTable(members, device, table));
    *filled = true;
    UpdateArgs run = args;
    run.tensors = static_cast<const UpdateTensor*>(table);
    run.rate = rate->data<float>();
    PD_RETURN_IF_ERROR(start.Blocks(blocks, run));
    return moves ? powers.Elements(run.count, run) : absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Tensor*> InPlace(BindContext* context, const char* slot,
                                const std::string& out_slot, size_t i) {
  Tensor* in = context->Input(slot, i);
  Tensor* out = context->Output(out_slot, i);
  if (in == nullptr || out == nullptr || in != out)
    return Unimplemented("'%s' is not updated in place", slot);
  return in;
}

void AddUpdates(DeviceKernels* kernels) {
  for (const Slots& slots : kSlots)
    kernels->Add(slots.type, {"cuda", BindUpdate});
}

}  // namespace pd::cuda
