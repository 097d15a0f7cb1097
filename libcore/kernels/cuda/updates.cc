// SPDX-License-Identifier: Apache-2.0
// sgd, momentum, adam, adamw and the merged ones: one kernel over a table of
// all tensors (update.cu). The table is made when the first run knows where
// they are.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {
namespace {

struct Slots {
  const char* kernel;
  const char* moments[2];  // input slots; the outputs are these with "Out"
  bool powers;
};

Slots SlotsOf(const std::string& type) {
  if (type == "sgd") return {"update_sgd", {}, false};
  if (type == "momentum" || type == "merged_momentum")
    return {"update_momentum", {"Velocity"}, false};
  return {"update_adam", {"Moment1", "Moment2"}, true};
}

// The tensors of one parameter.
struct Member {
  Tensor *param, *grad, *moments[2] = {}, *powers[2] = {};
  float decay = 0;
};

// The input that the op also writes: updates are in place.
absl::StatusOr<Tensor*> InPlace(BindContext* context, const std::string& slot,
                                size_t i) {
  Tensor* in = context->Input(slot, i);
  Tensor* out = context->Output(slot + "Out", i);
  if (in == nullptr || out == nullptr || in != out)
    return Unimplemented("'%s' is not updated in place", slot);
  PD_RETURN_IF_ERROR(OnlyFloat32({in}));
  return in;
}

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

absl::StatusOr<Member> ReadMember(BindContext* context, const Slots& slots,
                                  size_t i) {
  Member member;
  PD_ASSIGN_OR_RETURN(member.param, InPlace(context, "Param", i));
  member.grad = context->Input("Grad", i);
  if (member.grad == nullptr || member.grad->shape() != member.param->shape())
    return Unimplemented("'Grad' is missing or has another shape");
  PD_RETURN_IF_ERROR(OnlyFloat32({member.grad}));
  for (int k = 0; k < 2; ++k)
    if (slots.moments[k] != nullptr) {
      PD_ASSIGN_OR_RETURN(member.moments[k],
                          InPlace(context, slots.moments[k], i));
      if (member.moments[k]->size() != member.param->size())
        return Unimplemented("'%s' has another size", slots.moments[k]);
    }
  if (slots.powers) {
    PD_ASSIGN_OR_RETURN(member.powers[0], InPlace(context, "Beta1Pow", i));
    PD_ASSIGN_OR_RETURN(member.powers[1], InPlace(context, "Beta2Pow", i));
    if (member.powers[0]->size() != 1 || member.powers[1]->size() != 1)
      return Unimplemented("powers of more than one element");
  }
  PD_ASSIGN_OR_RETURN(member.decay, DecayOf(context->op(), i));
  return member;
}

UpdateArgs ReadAttrs(const OpDesc& op, size_t count) {
  UpdateArgs args{};
  args.count = static_cast<int32_t>(count);
  args.mu = op.AttrOr<float>("mu", 0.0f);
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
  const auto at = [](Tensor* t) {
    return t == nullptr ? nullptr : t->data<float>();
  };
  for (const Member& m : members) {
    const int64_t n = m.param->size();
    rows.push_back({at(m.param), at(m.grad), at(m.moments[0]), at(m.moments[1]),
                    at(m.powers[0]), at(m.powers[1]), n, block, m.decay, 0});
    block += (n + kUpdateChunk - 1) / kUpdateChunk;
  }
  return device->ToDevice(table, rows.data(),
                          rows.size() * sizeof(UpdateTensor));
}

absl::StatusOr<Step> BindUpdate(BindContext* context, DeviceBinding* binding) {
  const OpDesc& op = context->op();
  for (const char* slot : {"MasterParam", "SkipUpdate", "Beta1Tensor",
                           "Beta2Tensor", "EpsilonTensor"})
    if (context->Input(slot) != nullptr)
      return Unimplemented("an input '%s'", slot);
  if (op.AttrOr("use_global_beta_pow", false))
    return Unimplemented("powers that somebody else moves on");
  const Slots slots = SlotsOf(op.type);
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
  return Step([=, device = binding->device(),
               args = ReadAttrs(op, members.size())](const RunContext&) {
    if (!*filled) PD_RETURN_IF_ERROR(FillTable(members, device, table));
    *filled = true;
    UpdateArgs run = args;
    run.tensors = static_cast<const UpdateTensor*>(table);
    run.rate = rate->data<float>();
    PD_RETURN_IF_ERROR(start.Blocks(blocks, run));
    return slots.powers ? powers.Elements(run.count, run) : absl::OkStatus();
  });
}

}  // namespace

void AddUpdates(DeviceKernels* kernels) {
  for (const char* type :
       {"sgd", "momentum", "merged_momentum", "adam", "adamw", "merged_adam"})
    kernels->Add(type, {"cuda", BindUpdate});
}

}  // namespace pd::cuda
