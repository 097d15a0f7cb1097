// SPDX-License-Identifier: Apache-2.0
// pylayer: a function with a gradient that its author wrote. The first of
//   `blocks` computes Out from Input; Scope keeps its variables.
// pylayer_grad: runs backward_block, the second of them, over those variables
//   and Out@GRAD; Input@GRAD is what that makes, or 0.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/block_runner.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindPylayer(BindContext* context) {
  BlockRunner* blocks = context->blocks();
  const std::vector<int32_t>& all = context->Attr<BlockRefs>("blocks").indices;
  if (all.empty()) return InvalidArgument("attr 'blocks' is empty");
  Tensor* scope = context->Output("Scope");
  return Step([=, block = all[0]](const RunContext& run) {
    auto frame = std::make_shared<Frame>(blocks->frame());
    scope->set_kind(VarKind::kStepScopes);
    scope->frames() = {frame};
    return blocks->Run(block, frame.get(), run);
  });
}

// A variable whose gradient is wanted.
struct PylayerInput {
  std::string inside;  // the gradient's name in the block
  Tensor *value, *gradient;
};

absl::StatusOr<Step> BindPylayerGrad(BindContext* context) {
  BlockRunner* blocks = context->blocks();
  const int32_t block = context->Attr<BlockRef>("backward_block").index;
  Tensor* scope = context->Input("Scope");
  const std::vector<std::string>& names = context->op().Input("Input");
  if (scope == nullptr ||
      context->op().Output("Input@GRAD").size() != names.size())
    return InvalidArgument("%d variables have %d gradients, and 'Scope' is %s",
                           names.size(),
                           context->op().Output("Input@GRAD").size(),
                           scope == nullptr ? "missing" : "there");
  std::vector<PylayerInput> inputs;
  for (size_t i = 0; i < names.size(); ++i)
    if (Tensor* gradient = context->Output("Input@GRAD", i))
      inputs.push_back(
          {GradName(names[i]), context->Input("Input", i), gradient});
  return Step([=](const RunContext& run) -> absl::Status {
    if (scope->frames().empty())
      return FailedPrecondition("'Scope' has no value: the layer did not run");
    Frame* kept = scope->frames().front().get();
    kept->set_parent(blocks->frame());
    Frame frame(kept);
    PD_RETURN_IF_ERROR(blocks->Run(block, &frame, run));
    for (const PylayerInput& input : inputs) {
      const Frame::Variable* made = frame.FindLocal(input.inside);
      if (made != nullptr && made->tensor->has_value()) {
        PD_ASSIGN_OR_RETURN(*input.gradient,
                            blocks->values()->Clone(*made->tensor));
      } else if (input.value != nullptr) {
        PD_RETURN_IF_ERROR(
            blocks->values()->ZerosLike(*input.value, input.gradient));
      } else {
        return FailedPrecondition("nothing makes '%s'", input.inside);
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> PylayerGrad(const GradRequest& request) {
  const OpDesc& op = request.op;
  const std::vector<int32_t>& blocks = op.Attr<BlockRefs>("blocks").indices;
  if (blocks.size() < 2)
    return Unimplemented("its author wrote no gradient for it");
  OpDesc grad;
  grad.type = "pylayer_grad";
  grad.SetInput("Input", op.Input("Input"));
  std::vector<std::string> given, wanted;
  for (const std::string& name : op.Output("Out"))
    given.push_back(GradName(name));
  for (const std::string& name : op.Input("Input"))
    wanted.push_back(request.needs_grad(name) ? GradName(name)
                                              : std::string(kEmptyVar));
  grad.SetInput("Out@GRAD", std::move(given));
  grad.SetInput("Scope", op.Output("Scope"));
  grad.SetOutput("Input@GRAD", std::move(wanted));
  grad.attrs["backward_block"] = BlockRef{blocks[1]};
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterPylayer(OpRegistry* registry) {
  OpDef op("pylayer");
  op.Inputs("Input").Outputs("Out").Output("Scope");
  op.RequiredAttr("blocks", AttrType::kBlocks);
  op.RunsBlocks().Infer(InferNothing).Reference(BindPylayer);
  op.Grad(GradMaker(PylayerGrad));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("pylayer_grad");
  grad.Inputs("Input").OptionalInputs("Out@GRAD").Input("Scope");
  grad.OptionalOutputs("Input@GRAD");
  grad.RequiredAttr("backward_block", AttrType::kBlock);
  grad.RunsBlocks().NoGrad().Infer(InferGradLikeInput);
  return registry->Add(std::move(grad.Reference(BindPylayerGrad)));
}

}  // namespace pd
