// SPDX-License-Identifier: Apache-2.0
// Updates of parameters, the merged ones too: one kernel over a table of all
// tensors (update.cu). The table is made when the first run knows where
// they are.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/selected_rows.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {
namespace {

// A rule's state: input slots, and those of its outputs.
struct UpdateSlots {
  const char *type, *kernel;
  struct {
    const char *in, *out;
  } moments[3];
  const char* powers[2];  // betas'; adam moves them on
};
constexpr UpdateSlots kUpdateSlots[] = {
    {"sgd", "update_sgd", {}, {}},
    {"merged_sgd", "update_sgd", {}, {}},
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
    {"merged_adamw",
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
    {"merged_rmsprop",
     "update_rmsprop",
     {{"MeanSquare", "MeanSquareOut"},
      {"Moment", "MomentOut"},
      {"MeanGrad", "MeanGradOut"}},
     {}},
    {"adagrad", "update_adagrad", {{"Moment", "MomentOut"}}, {}},
    {"merged_adagrad", "update_adagrad", {{"Moment", "MomentOut"}}, {}},
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

const UpdateSlots& UpdateSlotsOf(const std::string& type) {
  const UpdateSlots* slots = kUpdateSlots;
  while (type != slots->type) ++slots;
  return *slots;
}

// The tensors of one parameter.
struct Member {
  Tensor *param, *half = nullptr, *grad, *moments[3] = {}, *powers[2] = {};
  Tensor* rate = nullptr;
  Tensor* dense = nullptr;  // for a gradient of selected rows: float32
  Copies copies;            // of what is not updated in place
  double decay = 0;
};

// The update's own decay of parameter i, which merged ones hold in lists.
absl::StatusOr<double> DecayOf(const OpDesc& op, size_t i) {
  const auto named = [&](const std::string& method, float coeff) {
    return method == "l2_decay" ? double{coeff} : 0.0;
  };
  if (op.type == "momentum")
    return named(op.Attr<std::string>("regularization_method"),
                 op.Attr<float>("regularization_coeff"));
  if (op.type == "merged_momentum") {
    const auto methods =
        op.Attr<std::vector<std::string>>("regularization_method");
    const auto coeffs = op.Attr<std::vector<float>>("regularization_coeff");
    if (methods.empty()) return 0.0;
    if (i >= methods.size() || i >= coeffs.size())
      return Unimplemented("decays that do not fit");
    return named(methods[i], coeffs[i]);
  }
  if (op.type == "merged_adamw") {
    const auto coeffs = op.Attr<std::vector<float>>("coeff");
    const auto ratios = op.Attr<std::vector<float>>("lr_ratio");
    if (i >= coeffs.size() || i >= ratios.size())
      return Unimplemented("decays that do not fit");
    return double{ratios[i]} * coeffs[i];
  }
  if (op.type == "adamw" && op.Attr<bool>("with_decay"))
    return double{op.Attr<float>("lr_ratio")} * op.Attr<float>("coeff");
  return 0.0;
}

// The parameter, or its master in float32, of which it is a rounded copy.
absl::Status ReadParam(BindContext* context, size_t i, Member* member) {
  PD_ASSIGN_OR_RETURN(
      member->param, InPlace(context, "Param", "ParamOut", i, &member->copies));
  if (context->op().AttrOr("multi_precision", false) &&
      context->Input("MasterParam", i) != nullptr) {
    member->half = member->param;
    PD_ASSIGN_OR_RETURN(
        member->param,
        InPlace(context, "MasterParam", "MasterParamOut", i, &member->copies));
    if (member->half->size() != member->param->size())
      return Unimplemented("a master of another size");
    PD_RETURN_IF_ERROR(SameFloats({member->half}));
  }
  member->grad = context->Input("Grad", i);
  if (member->grad == nullptr ||
      (!IsSelectedRows(member->grad) &&
       member->grad->size() != member->param->size()))
    return Unimplemented("'Grad' is missing or has another shape");
  if (member->param->dtype() == DType::kFloat64)
    return SameReals({member->param, member->grad});
  PD_RETURN_IF_ERROR(SameFloats({member->grad}));
  return OnlyFloat32({member->param});
}

absl::StatusOr<Member> ReadMember(BindContext* context,
                                  const UpdateSlots& slots, size_t i) {
  Member member;
  PD_RETURN_IF_ERROR(ReadParam(context, i, &member));
  for (int k = 0; k < 3; ++k) {
    const auto& [in, out] = slots.moments[k];
    // rmsprop has its third in a centered update alone.
    if (in == nullptr || (k == 2 && !context->op().Attr<bool>("centered")))
      continue;
    PD_ASSIGN_OR_RETURN(member.moments[k],
                        InPlace(context, in, out, i, &member.copies));
    PD_RETURN_IF_ERROR(SameReals({member.param, member.moments[k]}));
    if (member.moments[k]->size() != member.param->size())
      return Unimplemented("'%s' has another size", in);
  }
  for (int k = 0; k < 2; ++k) {
    if (slots.powers[k] == nullptr) continue;
    member.powers[k] = context->Input(slots.powers[k], i);
    if (slots.powers[1] != nullptr) {
      PD_ASSIGN_OR_RETURN(
          member.powers[k],
          InPlace(context, slots.powers[k],
                  absl::StrCat(slots.powers[k], "Out"), i, &member.copies));
    }
    if (member.powers[k] == nullptr || member.powers[k]->size() != 1)
      return Unimplemented("powers of more than one element");
    PD_RETURN_IF_ERROR(SameReals({member.param, member.powers[k]}));
  }
  member.rate = context->Input(
      "LearningRate", context->InputCount("LearningRate") > 1 ? i : size_t{0});
  if (member.rate == nullptr || member.rate->size() != 1)
    return Unimplemented("no learning rate");
  if (member.rate->dtype() != DType::kFloat32)
    PD_RETURN_IF_ERROR(SameReals({member.param, member.rate}));
  PD_ASSIGN_OR_RETURN(member.decay, DecayOf(context->op(), i));
  return member;
}

UpdateArgs ReadUpdateAttrs(const OpDesc& op, const UpdateSlots& slots,
                           size_t count, bool rescales) {
  UpdateArgs args{};
  args.count = static_cast<int32_t>(count);
  const auto number = [&](const char* name, float otherwise) {
    return double{op.AttrOr<float>(name, otherwise)};
  };
  args.mu = number(slots.moments[2].in != nullptr ? "momentum" : "mu", 0.0f);
  args.decay = number(op.type == "adadelta" ? "rho"
                      : op.type == "ftrl"   ? "lr_power"
                                            : "decay",
                      0.0f);
  args.l1 = number("l1", 0.0f);
  args.l2 = number("l2", 0.0f);
  args.nesterov = op.AttrOr("use_nesterov", false);
  args.beta1 = number("beta1", 0.9f);
  args.beta2 = number("beta2", 0.999f);
  args.epsilon = number("epsilon", 1e-8f);
  args.rescale = rescales ? number("rescale_grad", 1.0f) : 1.0;
  return args;
}

absl::Status FillTable(const std::vector<Member>& members, CudaDevice* device,
                       void* table) {
  std::vector<UpdateTensor> rows;
  int64_t block = 0;
  for (const Member& m : members) {
    const int64_t n = m.param->size();
    const Tensor* from = m.dense != nullptr ? m.dense : m.grad;
    NumberType grad = NumberType::kFloat32;
    if (m.dense == nullptr) {
      PD_ASSIGN_OR_RETURN(grad, NumberTypeOf(m.grad->dtype()));
    }
    NumberType half = NumberType::kFloat32;
    if (m.half != nullptr) {
      PD_ASSIGN_OR_RETURN(half, NumberTypeOf(m.half->dtype()));
    }
    PD_ASSIGN_OR_RETURN(const NumberType rate, NumberTypeOf(m.rate->dtype()));
    const auto at = [](Tensor* t) { return t == nullptr ? nullptr : t->raw(); };
    rows.push_back({at(m.param), at(m.half), from->raw(), at(m.moments[0]),
                    at(m.moments[1]), at(m.moments[2]), at(m.powers[0]),
                    at(m.powers[1]), at(m.rate), n, block, m.decay, grad, half,
                    rate, 0});
    block += (n + kUpdateChunk - 1) / kUpdateChunk;
  }
  return device->ToDevice(table, rows.data(),
                          rows.size() * sizeof(UpdateTensor));
}

// The tensors of an update, and their table in device memory, which the first
// run fills.
struct Updated {
  std::vector<Member> members;
  UpdateArgs args{};
  Tensor* skip = nullptr;
  int64_t blocks = 0;
  void* table = nullptr;
  std::shared_ptr<bool> filled = std::make_shared<bool>(false);

  absl::StatusOr<UpdateArgs> Now(CudaDevice* device) const {
    if (!*filled) PD_RETURN_IF_ERROR(FillTable(members, device, table));
    *filled = true;
    UpdateArgs now = args;
    now.tensors = static_cast<const UpdateTensor*>(table);
    now.skip = skip == nullptr ? nullptr : skip->data<bool>();
    return now;
  }
};

// By selected rows: the powers first, as on the CPU. Rules whose other rows
// stay as they are have a kernel for that; the others get a dense gradient.
absl::StatusOr<Step> BindUpdateByRows(BindContext* context,
                                      DeviceBinding* binding,
                                      const UpdateSlots& slots, Updated u) {
  const OpDesc& op = context->op();
  if (u.members.size() != 1) return Unimplemented("lists with selected rows");
  if (!u.members[0].copies.empty())
    return Unimplemented("selected rows, and 'Param' is not updated in place");
  Member& member = u.members[0];
  PD_RETURN_IF_ERROR(OnlyFloat32({member.param, member.rate}));
  PD_ASSIGN_OR_RETURN(
      const OrderedRows rows,
      OrderedRows::Make(context, binding, member.grad, *member.param));
  const bool lazy = op.AttrOr("lazy_mode", false);
  const bool decays = lazy && member.decay != 0;
  const bool adam = slots.powers[1] != nullptr;
  const bool its_rows = op.type == "sgd" || op.type == "adagrad" || lazy;
  if (!its_rows) member.dense = context->Scratch(member.param->bytes());
  PD_ASSIGN_OR_RETURN(const auto powers,
                      Starter<UpdateArgs>::Find(binding, "adam_powers"));
  PD_ASSIGN_OR_RETURN(const auto update,
                      Starter<UpdateArgs>::Find(binding, slots.kernel));
  PD_ASSIGN_OR_RETURN(
      const auto by_rows,
      Starter<UpdateRowsArgs>::Find(
          binding, op.type == "sgd"       ? "update_rows_sgd"
                   : op.type == "adagrad" ? "update_rows_adagrad"
                                          : "update_rows_adam"));
  PD_ASSIGN_OR_RETURN(
      const auto decay_others,
      Starter<UpdateRowsArgs>::Find(binding, "decay_other_rows"));
  return Step([=, device = CudaOf(binding),
               dense = member.dense](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const UpdateArgs run, u.Now(device));
    if (adam) PD_RETURN_IF_ERROR(powers.Elements(run.count, run));
    PD_RETURN_IF_ERROR(rows.Order());
    if (dense == nullptr) {
      const SelectedArgs selected = rows.Now();
      PD_RETURN_IF_ERROR(
          by_rows.Elements(selected.n * selected.width, {run, selected}));
      return decays ? decay_others.Elements(selected.height * selected.width,
                                            {run, selected})
                    : absl::OkStatus();
    }
    PD_RETURN_IF_ERROR(device->Clear(dense->raw(), dense->bytes()));
    PD_RETURN_IF_ERROR(rows.AddTo(dense->data<float>()));
    return update.Blocks(u.blocks, run);
  });
}

absl::StatusOr<Step> BindUpdate(BindContext* context, DeviceBinding* binding) {
  const OpDesc& op = context->op();
  for (const char* slot : {"Beta1Tensor", "Beta2Tensor", "EpsilonTensor"})
    if (context->Input(slot) != nullptr)
      return Unimplemented("an input '%s'", slot);
  if (op.AttrOr("use_global_beta_pow", false))
    return Unimplemented("powers that somebody else moves on");
  const UpdateSlots& slots = UpdateSlotsOf(op.type);
  Updated u;
  bool selected = false;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Member member, ReadMember(context, slots, i));
    if (member.param->size() == 0) return Unimplemented("an empty parameter");
    u.blocks += (member.param->size() + kUpdateChunk - 1) / kUpdateChunk;
    u.members.push_back(member);
    PD_RETURN_IF_ERROR(SameReals({u.members[0].param, member.param}));
    selected = selected || IsSelectedRows(member.grad);
  }
  if (u.members.empty()) return Unimplemented("no parameter");
  u.skip = context->Input("SkipUpdate");
  if (u.skip != nullptr &&
      (u.skip->dtype() != DType::kBool || u.skip->size() != 1))
    return Unimplemented("'SkipUpdate' is %s", Name(u.skip->dtype()));
  // momentum reads its rescale_grad for selected rows alone.
  u.args = ReadUpdateAttrs(op, slots, u.members.size(),
                           op.type == "merged_momentum" || selected);
  PD_ASSIGN_OR_RETURN(u.table,
                      binding->Keep(u.members.size() * sizeof(UpdateTensor)));
  if (selected) return BindUpdateByRows(context, binding, slots, std::move(u));
  const bool moves = slots.powers[1] != nullptr;
  Copies copies;
  for (const Member& m : u.members)
    copies.insert(copies.end(), m.copies.begin(), m.copies.end());
  return ForReal(*u.members[0].param, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using Start = Starter<UpdateArgs>;
    PD_ASSIGN_OR_RETURN(const auto start,
                        Start::Find(binding, KernelFor<T>(slots.kernel)));
    PD_ASSIGN_OR_RETURN(const auto powers,
                        Start::Find(binding, KernelFor<T>("adam_powers")));
    return Step(
        [=, device = CudaOf(binding)](const RunContext&) -> absl::Status {
          PD_RETURN_IF_ERROR(CopyAll(device, copies));
          PD_ASSIGN_OR_RETURN(const UpdateArgs run, u.Now(device));
          PD_RETURN_IF_ERROR(start.Blocks(u.blocks, run));
          return moves ? powers.Elements(run.count, run) : absl::OkStatus();
        });
  });
}

}  // namespace

absl::StatusOr<Tensor*> InPlace(BindContext* context, const char* slot,
                                const std::string& out_slot, size_t i,
                                Copies* copies) {
  Tensor* in = context->Input(slot, i);
  Tensor* out = context->Output(out_slot, i);
  if (in == nullptr || out == nullptr || in->bytes() != out->bytes())
    return Unimplemented("'%s' is missing, or its output has another size",
                         slot);
  if (in != out) copies->emplace_back(in, out);
  return out;
}

absl::Status CopyAll(CudaDevice* device, const Copies& copies) {
  for (const auto& [from, to] : copies)
    PD_RETURN_IF_ERROR(device->Copy(to->raw(), from->raw(), to->bytes()));
  return absl::OkStatus();
}

void AddUpdate(KernelTable* kernels) {
  for (const UpdateSlots& slots : kUpdateSlots)
    kernels->Add(slots.type,
                 Implementation("cuda", BindUpdate).TakesSelectedRows());
}

}  // namespace pd::cuda
