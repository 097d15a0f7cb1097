// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/kernel_operators.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/api/paddle_capi_meta.h"
#include "libcore/plugin/bind_kernel.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/custom_op.h"
#include "libcore/plugin/declared_ops.h"
#include "libcore/plugin/kernel_signatures.h"
#include "libcore/plugin/plugin_kernels.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {
namespace {

constexpr size_t kMostArguments = 1024;

struct KernelOperator {
  PluginPart part;
  KernelSignature signature;
  std::vector<CustomOp::Attr> attrs;
  std::vector<PD_KernelArgumentType> kinds;  // of the attributes
  void (*infer)(PD_InferMetaContext* context) = nullptr;
};

// Static initialisers fill it, so it is made when it is first used, and never
// destroyed. Operators stay where they are.
struct OperatorTable {
  std::mutex mutex;
  std::deque<KernelOperator> operators;
};
OperatorTable& Operators() {
  static auto* const table = new OperatorTable;
  return *table;
}

const KernelOperator* FindKernelOperator(absl::string_view type) {
  OperatorTable& table = Operators();
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (const KernelOperator& one : table.operators)
    if (one.part.type == type) return &one;
  return nullptr;
}

// The names that PaddlePaddle gives to slots: decorated as those of custom
// operators are.
absl::StatusOr<std::string> SlotOf(const char* prefix, size_t i,
                                   PD_KernelArgumentType kind) {
  const std::string name = absl::StrCat(prefix, i);
  switch (kind) {
    case PD_ARG_TYPE_TENSOR:
      return name;
    case PD_ARG_TYPE_LIST_TENSOR:
      return paddle::Vec(name);
    case PD_ARG_TYPE_OPTIONAL_TENSOR:
      return paddle::Optional(name);
    case PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR:
      return paddle::Optional(paddle::Vec(name));
    default:
      return InvalidArgument("argument '%s' is no tensor", name);
  }
}

absl::StatusOr<CustomOp::Attr> OperatorAttr(size_t i,
                                            PD_KernelArgumentType kind) {
  constexpr std::pair<PD_KernelArgumentType, AttrType> kTypes[] = {
      {PD_ARG_TYPE_BOOL, AttrType::kBoolean},
      {PD_ARG_TYPE_INT32, AttrType::kInt},
      {PD_ARG_TYPE_FLOAT32, AttrType::kFloat},
      {PD_ARG_TYPE_INT64, AttrType::kLong},
      {PD_ARG_TYPE_STRING, AttrType::kString},
      {PD_ARG_TYPE_LIST_INT32, AttrType::kInts},
      {PD_ARG_TYPE_LIST_FLOAT32, AttrType::kFloats},
      {PD_ARG_TYPE_LIST_INT64, AttrType::kLongs},
      {PD_ARG_TYPE_LIST_STRING, AttrType::kStrings}};
  for (const auto& [from, to] : kTypes)
    if (from == kind) return CustomOp::Attr{absl::StrCat("Attr_", i), "", to};
  return Unimplemented(
      "attribute %d has a type that operators do not store: expected bool, "
      "int, float, int64_t, std::string, or a vector of the last four",
      i);
}

absl::StatusOr<KernelOperator> MakeOperator(
    const char* name, const std::vector<PD_KernelArgumentType>& inputs,
    const std::vector<PD_KernelArgumentType>& attributes,
    const std::vector<PD_KernelArgumentType>& outputs) {
  KernelOperator made;
  made.part = {"op", name, DeclaringFile()};
  made.signature.op = made.signature.kernel = name;
  made.kinds = attributes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i == 0 && inputs[i] == PD_ARG_TYPE_CONTEXT) continue;
    PD_ASSIGN_OR_RETURN(std::string slot, SlotOf("Input_", i, inputs[i]));
    made.signature.inputs.push_back(std::move(slot));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    PD_ASSIGN_OR_RETURN(std::string slot, SlotOf("Output_", i, outputs[i]));
    made.signature.outputs.push_back(std::move(slot));
  }
  if (outputs.empty()) return InvalidArgument("it has no output");
  for (size_t i = 0; i < attributes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(CustomOp::Attr attr, OperatorAttr(i, attributes[i]));
    made.signature.attrs.push_back({attr.name, {}, std::nullopt});
    made.attrs.push_back(std::move(attr));
  }
  return made;
}

// The arguments of inference: tensors without memory.
class MetaArguments {
 public:
  void AddInput(const TensorMeta& meta) {
    PD_Tensor* tensor = Make();
    tensor->dims = meta.shape;
    tensor->dtype = CTypeOf(meta.dtype);
    context.inputs.back().push_back(tensor);
  }
  void AddOutput() { context.outputs.back().push_back(Make()); }
  PD_KernelContext context;

 private:
  PD_Tensor* Make() {
    tensors_.push_back(std::make_unique<PD_Tensor>());
    return tensors_.back().get();
  }
  std::vector<std::unique_ptr<PD_Tensor>> tensors_;
};

absl::Status InferOperator(InferContext* context) {
  const KernelOperator& op = *FindKernelOperator(context->op().type);
  MetaArguments arguments;
  for (const std::string& slot : op.signature.inputs) {
    arguments.context.inputs.emplace_back();
    const size_t count =
        context->HasInput(slot) ? context->InputCount(slot) : 0;
    if (count == 0 && !absl::StrContains(slot, "@OPTIONAL"))
      return InvalidArgument("input '%s' is missing", slot);
    for (size_t i = 0; i < count; ++i)
      arguments.AddInput(context->Input(slot, i));
  }
  for (const std::string& slot : op.signature.outputs) {
    arguments.context.outputs.emplace_back();
    for (size_t i = 0; i < context->OutputCount(slot); ++i)
      arguments.AddOutput();
  }
  std::vector<KernelAttr> attrs;
  for (size_t i = 0; i < op.kinds.size(); ++i) {
    PD_ASSIGN_OR_RETURN(KernelAttr attr, AttrFor(op.signature.attrs[i],
                                                 context->op(), op.kinds[i]));
    attrs.push_back(std::move(attr));
  }
  arguments.context.attrs = &attrs;
  PD_RETURN_IF_ERROR(
      CallPlugin(op.part, [&] { op.infer(&arguments.context); }));
  for (size_t s = 0; s < op.signature.outputs.size(); ++s)
    for (size_t i = 0; i < arguments.context.outputs[s].size(); ++i) {
      const PD_Tensor& out = *arguments.context.outputs[s][i];
      for (const int64_t extent : out.dims)
        if (extent < -1)
          return InvalidArgument("%s: inference gives the extent %d",
                                 op.part.Describe(), extent);
      const absl::StatusOr<DType> dtype = DTypeOfC(out.dtype);
      if (!dtype.ok()) return Annotate(dtype.status(), op.part.Describe());
      context->SetOutput(op.signature.outputs[s], out.dims, *dtype, i);
    }
  return absl::OkStatus();
}

OpDef DescriptionOf(const KernelOperator& op) {
  OpDef def(op.part.type);
  for (const std::string& slot : op.signature.inputs) {
    const bool list = absl::StrContains(slot, "@VECTOR");
    if (absl::StrContains(slot, "@OPTIONAL"))
      list ? def.OptionalInputs(slot) : def.OptionalInput(slot);
    else
      list ? def.Inputs(slot) : def.Input(slot);
  }
  for (const std::string& slot : op.signature.outputs)
    absl::StrContains(slot, "@VECTOR") ? def.Outputs(slot) : def.Output(slot);
  for (const CustomOp::Attr& attr : op.attrs)
    def.Attr(attr.name, DefaultOf(attr));
  def.Infer(InferOperator).Reference(BindHostKernel).NoGrad();
  return def;
}

absl::Status DeclareOperator(const char* name,
                             const std::vector<PD_KernelArgumentType>& inputs,
                             const std::vector<PD_KernelArgumentType>& attrs,
                             const std::vector<PD_KernelArgumentType>& outputs,
                             void (*infer)(PD_InferMetaContext* context)) {
  if (FindKernelOperator(name) != nullptr) return absl::OkStatus();
  auto made = MakeOperator(name, inputs, attrs, outputs);
  if (!made.ok())
    return Annotate(made.status(), absl::StrCat("op '", name, "'"));
  made->infer = infer;
  AddKernelSignature(made->signature);
  OperatorTable& table = Operators();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.operators.push_back(*std::move(made));
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> KernelOperators() {
  OperatorTable& table = Operators();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<OpDef> defs;
  for (const KernelOperator& op : table.operators)
    defs.push_back(DescriptionOf(op));
  return defs;
}

}  // namespace pd

extern "C" {

void PD_RegisterOperator(const char* name, size_t input_count,
                         const PD_KernelArgumentType* inputs,
                         size_t attribute_count,
                         const PD_KernelArgumentType* attributes,
                         size_t output_count,
                         const PD_KernelArgumentType* outputs,
                         void (*infer)(PD_InferMetaContext* context)) {
  absl::Status status = pd::InvalidArgument(
      "an operator without a name or a function for its shapes");
  if (name != nullptr && infer != nullptr &&
      std::max({input_count, attribute_count, output_count}) <=
          pd::kMostArguments)
    status = pd::DeclareOperator(name, {inputs, inputs + input_count},
                                 {attributes, attributes + attribute_count},
                                 {outputs, outputs + output_count}, infer);
  if (!status.ok()) throw pd::ErrorOf(status);
}

#define PD_INFER_AT(name, type)                                    \
  type PD_InferMetaContext##name##At(PD_InferMetaContext* context, \
                                     size_t index) {               \
    return PD_KernelContext##name##At(context, index);             \
  }
PD_INFER_AT(Input, PD_MetaTensor*)
PD_INFER_AT(MultiInput, PD_List)
PD_INFER_AT(Output, PD_MetaTensor*)
PD_INFER_AT(MultiOutput, PD_List)
PD_INFER_AT(BoolAttr, bool)
PD_INFER_AT(Int32Attr, int32_t)
PD_INFER_AT(Int64Attr, int64_t)
PD_INFER_AT(FloatAttr, float)
PD_INFER_AT(DoubleAttr, double)
PD_INFER_AT(ScalarAttr, PD_Scalar*)
PD_INFER_AT(IntArrayAttr, PD_IntArray*)
PD_INFER_AT(DataTypeAttr, C_DataType)
PD_INFER_AT(DataLayoutAttr, PD_DataLayout)
PD_INFER_AT(StringAttr, char*)
PD_INFER_AT(ListBoolAttr, PD_List)
PD_INFER_AT(ListInt32Attr, PD_List)
PD_INFER_AT(ListInt64Attr, PD_List)
PD_INFER_AT(ListFloatAttr, PD_List)
PD_INFER_AT(ListDoubleAttr, PD_List)
PD_INFER_AT(ListStringAttr, PD_List)
PD_INFER_AT(ListScalarAttr, PD_List)
PD_INFER_AT(PlaceAttr, PD_Place*)
#undef PD_INFER_AT

#define PD_META_GET(name, type)                                              \
  type PD_MetaTensor##name(const PD_MetaTensor* tensor, PD_Status* status) { \
    return PD_Tensor##name(tensor, status);                                  \
  }
PD_META_GET(GetPDDataType, C_DataType)
PD_META_GET(GetDataLayout, PD_DataLayout)
PD_META_GET(GetElementCount, int64_t)
PD_META_GET(GetNumDims, int64_t)
PD_META_GET(GetNumStrides, int64_t)
PD_META_GET(IsValid, bool)
#undef PD_META_GET
int64_t PD_MetaTensorGetDim(const PD_MetaTensor* tensor, size_t index,
                            PD_Status* status) {
  return PD_TensorGetDim(tensor, index, status);
}
int64_t PD_MetaTensorGetStride(const PD_MetaTensor* tensor, size_t index,
                               PD_Status* status) {
  return PD_TensorGetStride(tensor, index, status);
}
void PD_MetaTensorSetDims(PD_MetaTensor* tensor, int64_t ndims,
                          const int64_t* dims, PD_Status* status) {
  PD_TensorSetDims(tensor, ndims, dims, status);
}
void PD_MetaTensorSetStrides(PD_MetaTensor* tensor, int64_t nstrides,
                             const int64_t* strides, PD_Status* status) {
  PD_TensorSetStrides(tensor, nstrides, strides, status);
}
void PD_MetaTensorSetDataType(PD_MetaTensor* tensor, C_DataType dtype,
                              PD_Status* status) {
  PD_TensorSetDataType(tensor, dtype, status);
}
void PD_MetaTensorSetDataLayout(PD_MetaTensor* tensor, PD_DataLayout layout,
                                PD_Status* status) {
  PD_TensorSetDataLayout(tensor, layout, status);
}

}  // extern "C"
