// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_kernels.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/bind_kernel.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/declared_ops.h"
#include "libcore/plugin/plugin_collectives.h"
#include "libcore/plugin/plugin_device.h"

namespace pd {
namespace {

constexpr size_t kMostParameters = 1024, kMostKernels = 1 << 16;

// Static initialisers fill it, so it is made when it is first used, and never
// destroyed. Kernels stay where they are.
struct KernelTable {
  std::mutex mutex;
  std::deque<PluginKernel> kernels;
  size_t checked = 0;
};
KernelTable& Table() {
  static auto* const table = new KernelTable;
  return *table;
}

absl::Status CopyKinds(size_t count, const PD_KernelArgumentType* kinds,
                       std::vector<PD_KernelArgumentType>* to) {
  if (count > kMostParameters || (count > 0 && kinds == nullptr))
    return InvalidArgument("it has %d parameters of one kind", count);
  to->assign(kinds, kinds + count);
  return absl::OkStatus();
}

absl::Status Fill(const PD_KernelDeclaration& declared, PluginKernel* kernel) {
  kernel->backend = declared.backend;
  kernel->dtype = declared.dtype;
  kernel->layout = declared.layout;
  kernel->run = declared.run;
  PD_RETURN_IF_ERROR(
      CopyKinds(declared.input_count, declared.inputs, &kernel->inputs));
  PD_RETURN_IF_ERROR(CopyKinds(declared.attribute_count, declared.attributes,
                               &kernel->attributes));
  PD_RETURN_IF_ERROR(
      CopyKinds(declared.output_count, declared.outputs, &kernel->outputs));
  auto& inputs = kernel->inputs;
  if (!inputs.empty() && inputs[0] == PD_ARG_TYPE_CONTEXT) {
    kernel->takes_context = true;
    inputs.erase(inputs.begin());
  }
  if (kernel->outputs.empty()) return InvalidArgument("it has no output");
  PD_ASSIGN_OR_RETURN(const DType dtype, DTypeOfC(declared.dtype));
  PD_Kernel wanted;
  wanted.arguments.inputs.resize(inputs.size());
  wanted.arguments.outputs.resize(kernel->outputs.size());
  const PD_KernelKey key = {CTypeOf(dtype), declared.layout};
  if (declared.define_arguments != nullptr)
    declared.define_arguments(&key, &wanted);
  kernel->arguments = std::move(wanted.arguments);
  return absl::OkStatus();
}

std::string CountsOf(const PluginKernel& kernel) {
  return absl::StrCat(kernel.inputs.size(), " tensor",
                      kernel.inputs.size() == 1 ? "" : "s", " and ",
                      kernel.attributes.size(), " attribute",
                      kernel.attributes.size() == 1 ? "" : "s", " and writes ",
                      kernel.outputs.size());
}

bool Suits(const PluginKernel& kernel, const KernelSignature& signature) {
  return kernel.part.type == signature.kernel &&
         kernel.inputs.size() == signature.inputs.size() &&
         kernel.attributes.size() == signature.attrs.size() &&
         kernel.outputs.size() == signature.outputs.size();
}

// Whether an operator has the kernel; `*problem`: operators use the name, with
// other parameters.
bool IsUseful(const PluginKernel& kernel, std::string* problem) {
  std::vector<std::string> expected;
  for (const KernelSignature& signature : KernelSignatures()) {
    if (signature.kernel != kernel.part.type) continue;
    if (Suits(kernel, signature)) return true;
    if (std::find(expected.begin(), expected.end(), signature.Text()) ==
        expected.end())
      expected.push_back(signature.Text());
  }
  if (!expected.empty())
    *problem = absl::StrCat(kernel.part.Describe(), " takes ", CountsOf(kernel),
                            "; expected ", absl::StrJoin(expected, " or "));
  return false;
}

PD_List ListOf(std::vector<PD_TensorArgDef>* defs) {
  void** data = new void*[defs->size()];
  for (size_t i = 0; i < defs->size(); ++i) data[i] = &(*defs)[i];
  return {defs->size(), data};
}

// Adds an implementation to each op for which the backend has a kernel.
absl::Status Attach(
    const std::string& backend, OpRegistry* registry,
    const std::function<Implementation(const std::string& kernel)>& make) {
  {
    KernelTable& table = Table();
    const std::lock_guard<std::mutex> lock(table.mutex);
    if (table.kernels.empty()) return absl::OkStatus();
  }
  std::set<std::string> done;
  for (const KernelSignature& signature : KernelSignatures()) {
    const OpDef* def = registry->Find(signature.op);
    if (def == nullptr || def->shape_from_data() ||
        TypesOfKernel(signature.kernel, backend).empty() ||
        !done.insert(signature.op).second)
      continue;
    PD_RETURN_IF_ERROR(
        registry->AddImplementation(signature.op, make(signature.kernel)));
    KeepSchema(*def);
  }
  return absl::OkStatus();
}

bool IsLayout(PD_DataLayout layout) {
  return layout == ALL_LAYOUT || layout == NCHW;
}

}  // namespace

absl::Status DeclareKernel(int abi, const PD_KernelDeclaration* declaration) {
  if (abi != PD_PLUGIN_ABI)
    return FailedPrecondition(
        "it was built with headers of ABI %d; this pdkit has %d: compile it "
        "anew",
        abi, PD_PLUGIN_ABI);
  if (declaration == nullptr || declaration->name == nullptr ||
      declaration->backend == nullptr || declaration->run == nullptr)
    return InvalidArgument("a kernel without a name, a backend or a function");
  PluginKernel kernel;
  kernel.part = {"kernel", declaration->name, DeclaringFile()};
  PD_RETURN_IF_ERROR(
      Annotate(Fill(*declaration, &kernel),
               absl::StrCat("kernel '", declaration->name, "'")));
  KernelTable& table = Table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (table.kernels.size() == kMostKernels)
    return ResourceExhausted("more than %d kernels", kMostKernels);
  for (const PluginKernel& other : table.kernels)
    if (other.part.type == kernel.part.type &&
        other.backend == kernel.backend && other.dtype == kernel.dtype &&
        other.layout == kernel.layout)
      return AlreadyExists(
          "kernel '%s' of %s for %s is declared already%s", kernel.part.type,
          kernel.backend, NameOfC(kernel.dtype),
          other.part.file.empty() || other.part.file == kernel.part.file
              ? std::string()
              : absl::StrCat(", by '", other.part.file, "'"));
  table.kernels.push_back(std::move(kernel));
  return absl::OkStatus();
}

NewKernels CheckNewKernels() {
  KernelTable& table = Table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  NewKernels found;
  const auto add = [](const std::string& text, std::vector<std::string>* list) {
    if (std::find(list->begin(), list->end(), text) == list->end())
      list->push_back(text);
  };
  for (; table.checked < table.kernels.size(); ++table.checked) {
    const PluginKernel& kernel = table.kernels[table.checked];
    std::string problem;
    found.useful += IsUseful(kernel, &problem);
    if (!problem.empty()) add(problem, &found.unsuited);
    add(kernel.part.type, &found.names);
  }
  return found;
}

const PluginKernel* FindKernel(const KernelSignature& signature,
                               const std::string& backend, C_DataType dtype) {
  KernelTable& table = Table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (const PluginKernel& kernel : table.kernels)
    if (Suits(kernel, signature) && kernel.backend == backend &&
        kernel.dtype == dtype && IsLayout(kernel.layout))
      return &kernel;
  return nullptr;
}

std::string TypesOfKernel(const std::string& kernel,
                          const std::string& backend) {
  KernelTable& table = Table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<std::string> types;
  for (const PluginKernel& one : table.kernels)
    if (one.part.type == kernel && one.backend == backend)
      types.push_back(NameOfC(one.dtype));
  return absl::StrJoin(types, ", ");
}

absl::Status AttachPluginKernels(bool first, OpRegistry* registry) {
  PD_RETURN_IF_ERROR(Attach(kHostBackend, registry, [&](const auto& kernel) {
    return first
               ? Implementation(absl::StrCat("plugin:", kernel), BindHostKernel)
                     .AskedFirst()
               : Implementation(absl::StrCat("plugin(last):", kernel),
                                BindHostKernel)
                     .AskedLast();
  }));
  const auto& place = registry->device();
  if (place == nullptr || place->is_gpu) return absl::OkStatus();
  auto& device = static_cast<PluginDevice&>(*place->device);
  PD_RETURN_IF_ERROR(AttachCollectives(&device, registry));
  PD_RETURN_IF_ERROR(AttachAxpbySum(device, registry));
  return Attach(device.type(), registry, [&](const auto& kernel) {
    return Implementation(absl::StrCat("plugin:", kernel), BindDeviceKernel)
        .AskedFirst();
  });
}

}  // namespace pd

extern "C" void PD_PluginRegisterKernel(
    int abi, const PD_KernelDeclaration* declaration) {
  const absl::Status status = pd::DeclareKernel(abi, declaration);
  if (!status.ok()) throw pd::ErrorOf(status);
}

extern "C" {

PD_KernelArgsDef* PD_KernelGetArgsDef(PD_Kernel* kernel, PD_Status* status) {
  *status = C_SUCCESS;
  return &kernel->arguments;
}
PD_List PD_KernelArgsDefGetInputArgDefs(PD_KernelArgsDef* defs,
                                        PD_Status* status) {
  *status = C_SUCCESS;
  return pd::ListOf(&defs->inputs);
}
PD_List PD_KernelArgsDefGetOutputArgDefs(PD_KernelArgsDef* defs,
                                         PD_Status* status) {
  *status = C_SUCCESS;
  return pd::ListOf(&defs->outputs);
}
void PD_TensorArgDefSetDataLayout(PD_TensorArgDef* def, PD_DataLayout layout,
                                  PD_Status* status) {
  *status = C_SUCCESS;
  def->layout = layout;
}
void PD_TensorArgDefSetDataType(PD_TensorArgDef* def, C_DataType dtype,
                                PD_Status* status) {
  *status = C_SUCCESS;
  def->dtype = dtype;
}
void PD_PluginArgDefSetOnHost(PD_TensorArgDef* def, bool host) {
  def->on_host = host;
}
PD_DataLayout PD_KernelKeyGetLayout(const PD_KernelKey* key,
                                    PD_Status* status) {
  *status = C_SUCCESS;
  return key->layout;
}
C_DataType PD_KernelKeyGetDataType(const PD_KernelKey* key, PD_Status* status) {
  *status = C_SUCCESS;
  return key->dtype;
}

}  // extern "C"
