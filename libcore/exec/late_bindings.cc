// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_bindings.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The most bytes of scratch memory that a binding keeps between two runs.
constexpr size_t kMostHeld = size_t{64} << 10;

template <typename T>
void Append(T value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
void AppendAll(const std::vector<T>& values, std::string* key) {
  Append(static_cast<uint32_t>(values.size()), key);
  key->append(reinterpret_cast<const char*>(values.data()),
              values.size() * sizeof(T));
}

void AppendTensor(const Tensor& tensor, bool value, std::string* key) {
  Append(tensor.dtype(), key);
  AppendAll(tensor.shape(), key);
  Append(static_cast<uint32_t>(tensor.lod().size()), key);
  for (const auto& offsets : tensor.lod()) AppendAll(offsets, key);
  if (value && tensor.size() <= LateBindings::kMostValues)
    key->append(tensor.data<char>(), tensor.bytes());
}

bool Same(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.lod == b.lod &&
         a.kind == b.kind && a.height == b.height;
}

bool Same(const absl::StatusOr<Metas>& a, const Metas& b) {
  return a.ok() && a->size() == b.size() &&
         std::equal(a->begin(), a->end(), b.begin(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first &&
                             Same(one.second, other.second);
                    });
}

bool IsSmall(const TensorMeta& meta) {
  return meta.value != nullptr &&
         meta.value->size() <= LateBindings::kMostValues;
}

// The same small integers, each changed by another amount, so that a shape that
// follows from the difference of two of them changes as well.
template <typename T>
void Shift(int64_t by, Tensor* tensor) {
  for (int64_t i = 0; i < tensor->size(); ++i)
    tensor->data<T>()[i] = static_cast<T>(tensor->data<T>()[i] + T(by + i));
}

void ChangeElements(int64_t by, Tensor* tensor) {
  switch (tensor->dtype()) {
    case DType::kBool:
      for (int64_t i = 0; i < tensor->size(); ++i)
        tensor->data<bool>()[i] = !tensor->data<bool>()[i];
      return;
    case DType::kInt32:
      return Shift<uint32_t>(by, tensor);
    case DType::kInt64:
      return Shift<uint64_t>(by, tensor);
    case DType::kFloat32:
      return Shift<float>(by, tensor);
    case DType::kFloat64:
      return Shift<double>(by, tensor);
    default:  // no extent follows from other dtypes
      return;
  }
}

// The last input that is this variable; -1: none is.
int32_t InputThatIs(const Tensor* variable, const LateOp::Variables& inputs) {
  for (size_t i = inputs.size(); i-- > 0;)
    if (inputs[i].variable.tensor == variable) return static_cast<int32_t>(i);
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LateBinding>> LateBinding::Make(
    const LateOp& op, const LateOp::Variables& inputs,
    const LateOp::Variables& outputs, const Metas& metas) {
  std::unique_ptr<LateBinding> made(new LateBinding());
  TensorMap in, out;
  for (const auto& [name, variable] : inputs) {
    Tensor& own = made->inputs_.emplace_back(variable.tensor->dtype(),
                                             variable.tensor->shape());
    own.set_lod(variable.tensor->lod());
    in[name] = &own;
  }
  for (const auto& [name, variable] : outputs) {
    Output& output = made->outputs_.emplace_back();
    output.meta = metas.at(name);
    output.own = Tensor(output.meta.dtype, output.meta.shape);
    output.own.set_lod(output.meta.lod);
    output.bound = &output.own;
    const int32_t input = InputThatIs(variable.tensor, inputs);
    output.fixed = variable.fixed;
    output.input = input;
    output.replaces = input >= 0 && !variable.fixed;
    if (input >= 0 && variable.fixed)
      output.bound = &made->inputs_[static_cast<size_t>(input)];
    out[name] = output.bound;
  }
  PD_ASSIGN_OR_RETURN(made->bound_,
                      BindOnHost(op.def(), op.op(), in, out, nullptr, true));
  return made;
}

bool LateBinding::Fits(const LateOp::Variables& inputs,
                       const LateOp::Variables& outputs) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
    return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& now = *inputs[i].variable.tensor;
    if (now.dtype() != inputs_[i].dtype() ||
        now.shape() != inputs_[i].shape() || now.lod() != inputs_[i].lod())
      return false;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].variable.fixed != outputs_[i].fixed ||
        InputThatIs(outputs[i].variable.tensor, inputs) != outputs_[i].input)
      return false;
  return true;
}

// Gives the tensor that the op was bound to the memory of its output variable.
absl::Status LateBinding::Prepare(const OpVariables::Item& item,
                                  Output* output) {
  Tensor* target = item.variable.tensor;
  if (item.variable.fixed) {
    PD_RETURN_IF_ERROR(CheckFixed(item.name, output->meta, *target));
  } else {
    if (output->replaces) target = &output->spare;
    const absl::Status sized =
        target->Resize(output->meta.dtype, output->meta.shape);
    if (!sized.ok())
      return Annotate(sized, absl::StrCat("variable '", item.name, "'"));
  }
  SetMeta(output->meta, target);
  output->bound->Attach(target->raw());
  return absl::OkStatus();
}

absl::Status LateBinding::Run(const RunContext& context,
                              const LateOp::Variables& inputs,
                              const LateOp::Variables& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs_[i].Attach(inputs[i].variable.tensor->raw());
  for (size_t i = 0; i < outputs.size(); ++i)
    PD_RETURN_IF_ERROR(Prepare(outputs[i], &outputs_[i]));
  if (bound_.step != nullptr) {
    PD_RETURN_IF_ERROR(bound_.binder->AllocateScratch(
        [](Tensor* tensor) { return tensor->Allocate(); }));
    PD_RETURN_IF_ERROR(Guarded([&] { return bound_.step(context); }));
    bound_.binder->ReleaseScratch(kMostHeld);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output& output = outputs_[i];
    Tensor* const variable = outputs[i].variable.tensor;
    if (output.replaces) {
      std::swap(*variable, output.spare);
      if (output.spare.bytes() > kMostHeld) output.spare = Tensor();
    }
    if (output.bound->lod() != output.meta.lod) {  // it followed from elements
      variable->set_lod(output.bound->lod());
      output.bound->set_lod(output.meta.lod);
    }
  }
  return absl::OkStatus();
}

void LateBindings::MakeKey(const LateOp::Variables& inputs,
                           const LateOp::Variables& outputs) {
  key_.clear();
  for (const auto& [name, variable] : inputs)
    AppendTensor(*variable.tensor, by_values_, &key_);
  for (const auto& [name, variable] : outputs) {
    Append(variable.fixed, &key_);
    Append(InputThatIs(variable.tensor, inputs), &key_);
  }
}

LateBinding* LateBindings::Find(const LateOp::Variables& inputs,
                                const LateOp::Variables& outputs) {
  if (kept_.empty()) return nullptr;
  // In a loop whose shapes stay it is the one of the run before.
  if (!by_values_ && last_ != nullptr && last_->Fits(inputs, outputs))
    return last_;
  MakeKey(inputs, outputs);
  const auto found = kept_.find(key_);
  if (found == kept_.end()) return nullptr;
  found->second.used = ++uses_;
  last_ = found->second.binding.get();
  return last_;
}

bool LateBindings::MayKeep(const Metas& inputs, const Metas& made,
                           const InferFn& infer) {
  if (!by_values_) {
    Metas without = inputs, changed = inputs;
    std::deque<Tensor> others;
    for (auto& [name, meta] : without) meta.value = nullptr;
    for (auto& [name, meta] : changed) {
      if (!IsSmall(meta)) continue;
      others.push_back(CloneOf(*meta.value));
      ChangeElements(static_cast<int64_t>(2 * others.size() - 1),
                     &others.back());
      meta.value = &others.back();
    }
    if (Same(infer(without), made) && Same(infer(changed), made)) return true;
    by_values_ = true;
    last_ = nullptr;
    kept_.clear();
  }
  Metas small = inputs;
  for (auto& [name, meta] : small)
    if (!IsSmall(meta)) meta.value = nullptr;
  return Same(infer(small), made);
}

LateBinding* LateBindings::Keep(const LateOp::Variables& inputs,
                                const LateOp::Variables& outputs,
                                std::unique_ptr<LateBinding> binding) {
  if (kept_.size() >= kMost)
    kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.second.used < b.second.used;
                                 }));
  MakeKey(inputs, outputs);
  Kept& kept = kept_[key_];
  kept = {std::move(binding), ++uses_};
  last_ = kept.binding.get();
  return last_;
}

}  // namespace pd
