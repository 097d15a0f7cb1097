// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/bind_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/plugin_kernels.h"

namespace pd {
namespace {

// The slots whose outputs hold no elements.
constexpr char kNoElements[] = "XShape";

using Slots = std::vector<std::vector<Tensor*>>;

// A kernel with its tensors; those that are absent or not wanted are null.
struct BoundPluginKernel {
  const PluginKernel* kernel = nullptr;
  std::shared_ptr<const KernelSide> side;
  std::vector<KernelAttr> attrs;
  Slots inputs, outputs;
  std::vector<std::string> names;  // of the output slots

  absl::Status Run(const RunContext& run);

 private:
  absl::Status Store(const PD_Tensor& result, const std::string& slot,
                     Tensor* out) const;
};

std::mutex& SchemaMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::map<std::string, std::vector<AttrDef>>& Schemas() {
  static auto* const schemas = new std::map<std::string, std::vector<AttrDef>>;
  return *schemas;
}

// The tensors of a call; the plan's memory is theirs while the kernel runs.
class CallTensors {
 public:
  explicit CallTensors(bool on_device) : on_device_(on_device) {}
  // A tensor that the kernel keeps gets a copy in the end.
  ~CallTensors() {
    for (const auto& memory : lent_) {
      if (memory.use_count() == 1 || on_device_ || memory->bytes == 0) continue;
      auto* copy = static_cast<char*>(std::malloc(memory->bytes));
      if (copy != nullptr) std::memcpy(copy, memory->data, memory->bytes);
      memory->data = copy;
      memory->owner =
          std::shared_ptr<void>(copy, [](void* p) { std::free(p); });
    }
  }
  PD_Tensor* Lend(const Tensor& tensor, bool output) {
    auto memory = std::make_shared<KernelMemory>();
    memory->data = tensor.raw();
    memory->bytes = tensor.bytes();
    memory->on_device = on_device_;
    tensors_.push_back(std::make_unique<PD_Tensor>());
    PD_Tensor* made = tensors_.back().get();
    made->dims = tensor.shape();
    made->dtype = CTypeOf(tensor.dtype());
    for (const auto& level : tensor.lod())
      made->lod.emplace_back(level.begin(), level.end());
    (output ? made->offered : made->memory) = memory;
    lent_.push_back(std::move(memory));
    return made;
  }
  // Before the memories are looked at.
  void Clear() { tensors_.clear(); }

 private:
  bool on_device_;
  std::vector<std::unique_ptr<PD_Tensor>> tensors_;
  std::vector<std::shared_ptr<KernelMemory>> lent_;
};

// Extents without those of 1: kernels write a number as a list of one.
std::vector<int64_t> Proper(std::vector<int64_t> dims) {
  dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
  return dims;
}

absl::Status BoundPluginKernel::Store(const PD_Tensor& result,
                                      const std::string& slot,
                                      Tensor* out) const {
  const std::string& name = kernel->part.Describe();
  if (out->bytes() == 0) return absl::OkStatus();
  if (result.memory == nullptr || result.memory->data == nullptr)
    return InvalidArgument("%s leaves output '%s' without a value", name, slot);
  if (result.dtype != CTypeOf(out->dtype()))
    return InvalidArgument("%s gives output '%s' the type %s; expected %s",
                           name, slot, NameOfC(result.dtype),
                           Name(out->dtype()));
  if (Proper(result.dims) != Proper(out->shape()))
    return InvalidArgument("%s gives output '%s' the shape %s; expected %s",
                           name, slot, ToString(result.dims),
                           ToString(out->shape()));
  if (!result.strides.empty() && result.strides != RowMajorStrides(result.dims))
    return InvalidArgument("%s gives output '%s' strides %s; expected %s", name,
                           slot, ToString(result.strides),
                           ToString(RowMajorStrides(result.dims)));
  if (result.memory->on_device != side->on_device())
    return InvalidArgument(
        "%s writes output '%s' into the memory of %s; expected that of %s",
        name, slot, result.memory->on_device ? "the device" : "the host",
        side->on_device() ? "the device" : "the host");
  if (result.memory->bytes < result.offset + out->bytes())
    return InvalidArgument("%s gives output '%s' %d bytes; expected %d", name,
                           slot, result.memory->bytes - result.offset,
                           out->bytes());
  const char* from =
      static_cast<const char*>(result.memory->data) + result.offset;
  return from == out->raw() ? absl::OkStatus()
                            : side->copy(out->raw(), from, out->bytes());
}

absl::Status BoundPluginKernel::Run(const RunContext& run) {
  CallTensors tensors(side->on_device());
  PD_DeviceContext device;
  if (side->on_device()) device.type = side->backend;
  device.id = side->id;
  device.allocate = side->allocate;
  if (side->enter != nullptr) {
    PD_ASSIGN_OR_RETURN(device.stream, side->enter());
  }
  device.seed = run.seed * 0x9e3779b97f4a7c15u + run.step;
  device.engine.seed(device.seed);
  PD_KernelContext context;
  context.device = &device;
  context.attrs = &attrs;
  const auto lend = [&](const Slots& slots, bool output,
                        std::vector<std::vector<PD_Tensor*>>* to) {
    for (const auto& list : slots) {
      to->emplace_back();
      for (const Tensor* tensor : list)
        to->back().push_back(tensor == nullptr ? nullptr
                                               : tensors.Lend(*tensor, output));
    }
  };
  lend(inputs, false, &context.inputs);
  lend(outputs, true, &context.outputs);
  PD_RETURN_IF_ERROR(CallPlugin(kernel->part, [&] { kernel->run(&context); }));
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t k = 0; k < outputs[i].size(); ++k)
      if (outputs[i][k] != nullptr)
        PD_RETURN_IF_ERROR(
            Store(*context.outputs[i][k], names[i], outputs[i][k]));
  tensors.Clear();
  return absl::OkStatus();
}

absl::Status CheckInputs(const PluginKernel& kernel,
                         const KernelSignature& signature, bool on_device,
                         const Slots& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto kind = kernel.inputs[i];
    const bool list = kind == PD_ARG_TYPE_LIST_TENSOR ||
                      kind == PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR;
    const bool optional = kind == PD_ARG_TYPE_OPTIONAL_TENSOR ||
                          kind == PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR;
    const std::string& slot = signature.inputs[i];
    if (!list && kind != PD_ARG_TYPE_TENSOR &&
        kind != PD_ARG_TYPE_OPTIONAL_TENSOR)
      return Unimplemented("its parameter for '%s' is no tensor", slot);
    if (inputs[i].empty() && !optional)
      return Unimplemented("it reads '%s', which the op does not have", slot);
    if (inputs[i].size() > 1 && !list)
      return Unimplemented(
          "its parameter for '%s' is one tensor; the op has "
          "%d",
          slot, inputs[i].size());
    if (on_device && kernel.arguments.inputs[i].on_host)
      return Unimplemented("it reads '%s' in the host's memory", slot);
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const PluginKernel& kernel,
                          const KernelSignature& signature,
                          const Slots& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto kind = kernel.outputs[i];
    if (kind != PD_ARG_TYPE_TENSOR && kind != PD_ARG_TYPE_LIST_TENSOR)
      return Unimplemented("its parameter for '%s' is no tensor",
                           signature.outputs[i]);
    if (outputs[i].size() > 1 && kind == PD_ARG_TYPE_TENSOR)
      return Unimplemented(
          "its parameter for '%s' is one tensor; the op has "
          "%d",
          signature.outputs[i], outputs[i].size());
    const C_DataType said = kernel.arguments.outputs[i].dtype;
    for (const Tensor* out : outputs[i])
      if (out != nullptr && said != UNDEFINED && said != CTypeOf(out->dtype()))
        return Unimplemented("it writes '%s' as %s; the op's is %s",
                             signature.outputs[i], NameOfC(said),
                             Name(out->dtype()));
  }
  return absl::OkStatus();
}

template <typename Container>
bool Has(const Container& container, const std::string& name) {
  return std::find(container.begin(), container.end(), name) != container.end();
}

// An op with more than the kernel is given is another computation.
absl::Status CheckSlots(const BindContext& context,
                        const KernelSignature& signature) {
  const OpDesc& op = context.op();
  for (const auto& [slot, names] : op.inputs)
    if (!names.empty() && !Has(signature.inputs, slot)) {
      bool known = false;  // an attribute's other form, which it refuses itself
      for (const SignatureAttr& attr : signature.attrs)
        known = known || Has(attr.slots, slot);
      if (!known)
        return Unimplemented("it does not read '%s', which the op has", slot);
    }
  for (const auto& [slot, names] : op.outputs) {
    if (Has(signature.outputs, slot) || slot == kNoElements) continue;
    for (size_t i = 0; i < names.size(); ++i)
      if (context.Output(slot, i) != nullptr)
        return Unimplemented("it does not write '%s', which is wanted", slot);
  }
  return absl::OkStatus();
}

bool IsGiven(const KernelSignature& signature, const std::string& name) {
  for (const SignatureAttr& attr : signature.attrs) {
    if (attr.name == name) return true;
    if (attr.name == "$dims" && (name == "dim" || name == "reduce_all"))
      return true;
    if (attr.name == "$value" && (name == "value" || name == "str_value"))
      return true;
    if (attr.name == "$values" &&
        (name == "bool_values" || name == "fp32_values" ||
         name == "int32_values" || name == "int64_values"))
      return true;
  }
  return IsAboutExecution(name);
}

bool IsTrailing(const BindContext& context, const Attribute& axis) {
  const Tensor* x = context.Input("X");
  const Tensor* y = context.Input("Y");
  const auto* value = std::get_if<int32_t>(&axis);
  return value != nullptr && x != nullptr && y != nullptr &&
         x->rank() >= y->rank() &&
         *value == static_cast<int32_t>(x->rank() - y->rank());
}

absl::Status CheckAttrs(const BindContext& context,
                        const KernelSignature& signature) {
  const std::lock_guard<std::mutex> lock(SchemaMutex());
  for (const AttrDef& def : Schemas()[signature.op]) {
    const Attribute* value = context.op().FindAttr(def.name);
    if (value == nullptr || IsGiven(signature, def.name) ||
        (def.default_value.has_value() && *value == *def.default_value) ||
        (signature.trailing && def.name == "axis" &&
         IsTrailing(context, *value)))
      continue;
    return Unimplemented(
        "it is not given attribute '%s', which has another value than its "
        "default",
        def.name);
  }
  return absl::OkStatus();
}

Slots TensorsOf(const BindContext& context,
                const std::vector<std::string>& slots, bool outputs) {
  Slots tensors;
  for (const std::string& slot : slots) {
    tensors.emplace_back();
    const size_t count =
        outputs ? context.OutputCount(slot) : context.InputCount(slot);
    for (size_t i = 0; i < count; ++i) {
      Tensor* tensor =
          outputs ? context.Output(slot, i) : context.Input(slot, i);
      if (outputs || tensor != nullptr) tensors.back().push_back(tensor);
    }
  }
  return tensors;
}

absl::StatusOr<Step> BindOne(BindContext* context,
                             const KernelSignature& signature,
                             std::shared_ptr<const KernelSide> side) {
  auto bound = std::make_shared<BoundPluginKernel>();
  bound->inputs = TensorsOf(*context, signature.inputs, false);
  bound->outputs = TensorsOf(*context, signature.outputs, true);
  bound->names = signature.outputs;
  const Tensor* typed = nullptr;
  const auto first_of = [](const std::vector<Tensor*>& list) {
    return list.empty() ? nullptr : list[0];
  };
  if (signature.typed_by_output)
    typed = first_of(bound->outputs[signature.typed]);
  else if (!bound->inputs.empty())
    typed = first_of(bound->inputs[signature.typed]);
  if (typed == nullptr && !signature.typed_by_output)
    typed = first_of(bound->outputs[0]);
  if (typed == nullptr) return Unimplemented("the op has no tensor");
  bound->kernel = FindKernel(signature, side->backend, CTypeOf(typed->dtype()));
  if (bound->kernel == nullptr) {
    const std::string types = TypesOfKernel(signature.kernel, side->backend);
    return Unimplemented("kernel '%s' is not there for %s%s", signature.kernel,
                         Name(typed->dtype()),
                         types.empty() ? "" : absl::StrCat(", but ", types));
  }
  const PluginKernel& kernel = *bound->kernel;
  PD_RETURN_IF_ERROR(
      CheckInputs(kernel, signature, side->on_device(), bound->inputs));
  PD_RETURN_IF_ERROR(CheckOutputs(kernel, signature, bound->outputs));
  PD_RETURN_IF_ERROR(CheckSlots(*context, signature));
  PD_RETURN_IF_ERROR(CheckAttrs(*context, signature));
  for (size_t i = 0; i < signature.attrs.size(); ++i) {
    PD_ASSIGN_OR_RETURN(
        KernelAttr attr,
        AttrFor(signature.attrs[i], context->op(), kernel.attributes[i]));
    bound->attrs.push_back(std::move(attr));
  }
  bound->side = std::move(side);
  return Step([bound](const RunContext& run) { return bound->Run(run); });
}

}  // namespace

void KeepSchema(const OpDef& def) {
  const std::lock_guard<std::mutex> lock(SchemaMutex());
  Schemas()[def.type()] = def.attrs();
}

absl::StatusOr<Step> BindKernel(BindContext* context,
                                std::shared_ptr<const KernelSide> side) {
  std::vector<std::string> refusals;
  for (const KernelSignature& signature : KernelSignatures()) {
    if (signature.op != context->op().type ||
        TypesOfKernel(signature.kernel, side->backend).empty())
      continue;
    absl::StatusOr<Step> step = BindOne(context, signature, side);
    if (step.ok() || !absl::IsUnimplemented(step.status())) return step;
    refusals.push_back(std::string(step.status().message()));
  }
  return Unimplemented("%s", refusals.empty()
                                 ? std::string("no kernel of a plug-in")
                                 : absl::StrJoin(refusals, "; "));
}

absl::StatusOr<Step> BindHostKernel(BindContext* context) {
  static const auto* const kSide = [] {
    auto side = std::make_shared<KernelSide>();
    side->backend = kHostBackend;
    side->copy = [](void* to, const void* from, size_t bytes) {
      std::memmove(to, from, bytes);
      return absl::OkStatus();
    };
    return new std::shared_ptr<const KernelSide>(std::move(side));
  }();
  return BindKernel(context, *kSide);
}

}  // namespace pd
