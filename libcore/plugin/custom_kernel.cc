// SPDX-License-Identifier: Apache-2.0
// Runs the kernel of a custom operator on the tensors of a plan. Inputs are
// lent as they lie there; the memory of the outputs is offered to the tensors
// that the kernel makes (api/paddle_memory.h), so that nothing is copied where
// it takes it.
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_binder.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/custom_op.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {
namespace {

using paddle::detail::KernelArguments;
using paddle::detail::MemoryPtr;
using paddle::detail::TensorAccess;

// An op with its tensors; those that are absent or not wanted are null.
struct BoundKernel {
  const CustomOp* op = nullptr;
  std::vector<paddle::any> attrs;
  std::vector<std::vector<Tensor*>> inputs, outputs;
  bool resizes = false;  // the outputs take the shapes of the results

  absl::Status Run() const;

 private:
  class Lent;
  absl::Status Take(std::vector<paddle::Tensor> results) const;
  absl::Status Store(const paddle::Tensor& result, const std::string& slot,
                     Tensor* out) const;
};

// The plan's memory while the kernel has it. A tensor that the kernel keeps
// gets a copy in the end.
class BoundKernel::Lent {
 public:
  MemoryPtr Lend(const Tensor& tensor) {
    memories_.push_back(
        paddle::detail::Borrow(tensor.raw(), tensor.bytes(), nullptr));
    return memories_.back();
  }
  ~Lent() {
    for (const MemoryPtr& memory : memories_) {
      if (memory.use_count() == 1) continue;
      const void* from = memory->data;
      const size_t bytes = memory->bytes;
      paddle::detail::Own(bytes, memory.get());
      if (bytes > 0) std::memcpy(memory->data, from, bytes);
    }
  }

 private:
  std::vector<MemoryPtr> memories_;
};

class Offer {
 public:
  explicit Offer(std::vector<MemoryPtr>* memories)
      : before_(paddle::detail::OfferedMemory()) {
    paddle::detail::OfferedMemory() = memories;
  }
  ~Offer() { paddle::detail::OfferedMemory() = before_; }

 private:
  std::vector<MemoryPtr>* before_;
};

paddle::Tensor View(const Tensor& tensor, MemoryPtr memory) {
  return TensorAccess::Make(PhiTypeOf(tensor.dtype()), tensor.shape(),
                            std::move(memory));
}

void Put(const CustomOp::Slot& slot, std::vector<paddle::Tensor> tensors,
         paddle::detail::InputOf<paddle::Tensor>* input) {
  if (slot.is_optional && !tensors.empty()) {
    if (slot.is_list)
      input->maybe_many = std::move(tensors);
    else
      input->maybe = std::move(tensors[0]);
  } else if (slot.is_list) {
    input->many = std::move(tensors);
  } else if (!tensors.empty()) {
    input->one = std::move(tensors[0]);
  }
}

absl::Status BoundKernel::Store(const paddle::Tensor& result,
                                const std::string& slot, Tensor* out) const {
  if (!result.initialized())
    return InvalidArgument("%s: the kernel leaves output '%s' without a value",
                           op->Describe(), slot);
  PD_ASSIGN_OR_RETURN(const DType dtype, DTypeOfPhi(result.dtype()));
  if (dtype != out->dtype())
    return InvalidArgument(
        "%s: the kernel gives output '%s' the type %s; InferDtype says %s",
        op->Describe(), slot, Name(dtype), Name(out->dtype()));
  if (resizes && result.shape() != out->shape()) {
    PD_RETURN_IF_ERROR(out->Resize(dtype, result.shape()));
  } else if (result.shape() != out->shape()) {
    return InvalidArgument(
        "%s: the kernel gives output '%s' the shape %s; InferShape says %s",
        op->Describe(), slot, ToString(result.shape()), ToString(out->shape()));
  }
  if (out->bytes() > 0 && result.data() != out->raw())
    std::memmove(out->raw(), result.data(), out->bytes());
  return absl::OkStatus();
}

// Stores what is not written in place: a list takes all results.
absl::Status BoundKernel::Take(std::vector<paddle::Tensor> results) const {
  std::vector<std::pair<const std::string*, Tensor*>> places;
  for (size_t i = 0; i < outputs.size(); ++i)
    for (Tensor* out : outputs[i])
      if (op->outputs[i].partner < 0)
        places.emplace_back(&op->outputs[i].name, out);
  if (results.size() != places.size())
    return InvalidArgument("%s: the kernel returns %d tensors; expected %d",
                           op->Describe(), results.size(), places.size());
  // A result in the memory of another output would be overwritten.
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t k = 0; k < places.size(); ++k)
      if (k != i && results[i].data() != nullptr &&
          places[k].second != nullptr &&
          results[i].data() == places[k].second->raw())
        results[i] = results[i].copy_to(paddle::CPUPlace());
  for (size_t i = 0; i < results.size(); ++i)
    if (places[i].second != nullptr)
      PD_RETURN_IF_ERROR(Store(results[i], *places[i].first, places[i].second));
  return absl::OkStatus();
}

absl::Status BoundKernel::Run() const {
  Lent lent;  // ends after the arguments
  KernelArguments arguments;
  arguments.attrs = attrs;
  arguments.inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int partner = op->inputs[i].partner;
    std::vector<paddle::Tensor> tensors;
    for (size_t k = 0; k < inputs[i].size(); ++k) {
      const Tensor* tensor = inputs[i][k];
      // Written in place: in the memory of the output.
      if (partner >= 0) {
        const auto& list = outputs[static_cast<size_t>(partner)];
        Tensor* out = k < list.size() ? list[k] : nullptr;
        if (out == nullptr) {
          tensors.push_back(
              View(*tensor, lent.Lend(*tensor)).copy_to(paddle::CPUPlace()));
          continue;
        }
        if (resizes) PD_RETURN_IF_ERROR(out->Resize(tensor->shape()));
        if (out->raw() != tensor->raw() && tensor->bytes() > 0)
          std::memmove(out->raw(), tensor->raw(), tensor->bytes());
        tensor = out;
      }
      tensors.push_back(View(*tensor, lent.Lend(*tensor)));
    }
    Put(op->inputs[i], std::move(tensors), &arguments.inputs[i]);
  }
  std::vector<MemoryPtr> offered;
  for (size_t i = 0; i < outputs.size(); ++i)
    for (const Tensor* out : outputs[i])
      if (op->outputs[i].partner < 0 && out != nullptr && out->bytes() > 0 &&
          out->raw() != nullptr)
        offered.push_back(lent.Lend(*out));
  bool by_pointer = false;
  for (const auto& parameter : op->declaration->kernel.parameters)
    by_pointer =
        by_pointer || parameter.kind == paddle::detail::ParameterKind::kOutput;
  if (by_pointer) arguments.written.resize(outputs.size());
  {
    const Offer offer(&offered);
    PD_RETURN_IF_ERROR(
        CallPlugin(*op, [&] { op->declaration->kernel.call(arguments); }));
  }
  return Take(std::move(by_pointer ? arguments.written : arguments.results));
}

}  // namespace

absl::StatusOr<Step> BindCustom(BindContext* context) {
  BoundKernel kernel;
  kernel.op = FindCustomOp(context->op().type);
  const CustomOp& op = *kernel.op;
  kernel.attrs = AttrsOf(op, context->op());
  for (const CustomOp::Slot& slot : op.inputs) {
    kernel.inputs.emplace_back();
    for (size_t i = 0; i < context->InputCount(slot.name); ++i)
      if (Tensor* tensor = context->Input(slot.name, i))
        kernel.inputs.back().push_back(tensor);
  }
  for (const CustomOp::Slot& slot : op.outputs) {
    kernel.outputs.emplace_back();
    for (size_t i = 0; i < context->OutputCount(slot.name); ++i)
      kernel.outputs.back().push_back(context->Output(slot.name, i));
  }
  // A late op's outputs are its own. There the kernel is right where InferShape
  // is not, as in PaddlePaddle.
  kernel.resizes = dynamic_cast<LateBinder*>(context) != nullptr &&
                   op.declaration->infer_shape.call != nullptr;
  const auto reads = [&](const Tensor* tensor) {
    size_t times = 0;
    for (const auto& list : kernel.inputs)
      for (const Tensor* input : list) times += input == tensor;
    return times;
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i].partner < 0 || kernel.resizes) continue;
    const auto& outs =
        kernel.outputs[static_cast<size_t>(op.inputs[i].partner)];
    for (size_t k = 0; k < kernel.inputs[i].size() && k < outs.size(); ++k)
      if (outs[k] != nullptr && reads(kernel.inputs[i][k]) == 1)
        context->MayShare(kernel.inputs[i][k], outs[k]);
  }
  return Step(
      [kernel = std::move(kernel)](const RunContext&) { return kernel.Run(); });
}

}  // namespace pd
