// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/kernel_signatures.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pd {
namespace {

// Op, kernel, input slots, attributes, output slots. An attribute "a!S!T" is
// given only where the op has no slot S or T; "$" begins the names that
// kernel_attributes.cc knows. "*" marks the input whose element type is the
// kernel's; without it that is the first.
struct Row {
  const char *op, *kernel, *inputs, *attrs, *outputs;
};

constexpr Row kRows[] = {
    {"assign", "assign", "X", "", "Out"},
    {"assign_value", "assign_value", "", "shape dtype $values", "Out"},
    {"cast", "cast", "X", "out_dtype", "Out"},
    {"clip", "clip", "X", "min!Min max!Max", "Out"},
    {"concat", "concat", "X", "axis!AxisTensor", "Out"},
    {"conv2d", "conv2d", "Input Filter",
     "strides paddings padding_algorithm dilations groups data_format",
     "Output"},
    {"conv2d", "conv2d", "Input Filter",
     "strides paddings padding_algorithm groups dilations data_format",
     "Output"},
    {"cumsum", "cumsum", "X", "axis flatten exclusive reverse", "Out"},
    {"dot", "dot", "X Y", "", "Out"},
    {"dot_grad", "dot_grad", "X Y Out@GRAD", "", "X@GRAD Y@GRAD"},
    {"expand_v2", "expand", "X", "shape!Shape!expand_shapes_tensor", "Out"},
    {"fill_any_like", "full_like", "X", "value dtype", "Out"},
    {"fill_constant", "full", "",
     "shape!ShapeTensor!ShapeTensorList $value!ValueTensor dtype", "Out"},
    {"gather", "gather", "X Index", "axis!Axis", "Out"},
    {"gelu", "gelu", "X", "approximate", "Out"},
    {"gelu_grad", "gelu_grad", "X Out@GRAD", "approximate", "X@GRAD"},
    {"elu", "elu", "X", "alpha", "Out"},
    {"layer_norm", "layer_norm", "X Scale Bias", "epsilon begin_norm_axis",
     "Y Mean Variance"},
    {"leaky_relu", "leaky_relu", "X", "alpha", "Out"},
    {"leaky_relu_grad", "leaky_relu_grad", "X Out@GRAD", "alpha", "X@GRAD"},
    {"log_softmax", "log_softmax", "X", "axis", "Out"},
    {"log_softmax_grad", "log_softmax_grad", "Out Out@GRAD", "axis", "X@GRAD"},
    {"logical_and", "logical_and", "X Y", "", "Out"},
    {"logical_not", "logical_not", "X", "", "Out"},
    {"logical_or", "logical_or", "X Y", "", "Out"},
    {"logical_xor", "logical_xor", "X Y", "", "Out"},
    {"lookup_table_v2", "embedding", "Ids *W", "padding_idx", "Out"},
    {"matmul_v2", "matmul", "X Y", "trans_x trans_y", "Out"},
    {"matmul_v2_grad", "matmul_grad", "X Y Out@GRAD", "trans_x trans_y",
     "X@GRAD Y@GRAD"},
    {"mean", "mean_all", "X", "", "Out"},
    {"mean_grad", "mean_all_grad", "X Out@GRAD", "", "X@GRAD"},
    {"mv", "mv", "X Vec", "", "Out"},
    {"pool2d", "pool2d", "X",
     "ksize strides paddings ceil_mode exclusive data_format pooling_type "
     "global_pooling adaptive padding_algorithm",
     "Out"},
    {"pow", "pow", "X", "factor!FactorTensor", "Out"},
    {"reshape2", "reshape", "X", "shape!Shape!ShapeTensor", "Out XShape"},
    {"reshape2", "reshape_infer", "X", "shape!Shape!ShapeTensor", "Out"},
    {"scale", "scale", "X", "scale!ScaleTensor bias bias_after_scale", "Out"},
    {"sgd", "sgd", "Param LearningRate Grad MasterParam", "multi_precision",
     "ParamOut MasterParamOut"},
    {"softmax", "softmax", "X", "axis", "Out"},
    {"softmax_grad", "softmax_grad", "Out Out@GRAD", "axis", "X@GRAD"},
    {"softmax_with_cross_entropy", "cross_entropy_with_softmax", "Logits Label",
     "soft_label use_softmax numeric_stable_mode ignore_index axis",
     "Softmax Loss"},
    {"softmax_with_cross_entropy_grad", "cross_entropy_with_softmax_grad",
     "Label *Softmax Loss@GRAD",
     "soft_label use_softmax numeric_stable_mode ignore_index axis",
     "Logits@GRAD"},
    {"stack", "stack", "X", "axis", "Y"},
    {"tile", "tile", "X", "repeat_times!RepeatTimes!repeat_times_tensor",
     "Out"},
    {"top_k_v2", "topk", "X", "k!K axis largest sorted", "Out Indices"},
    {"transpose2", "transpose", "X", "axis", "Out"},
    {"tril_triu", "tril_triu", "X", "diagonal lower", "Out"},
    {"where", "where", "Condition *X Y", "", "Out"},
};

// Kernels of one input, whose names are those of their ops.
constexpr const char* kUnary[] = {
    "abs",      "acos",       "acosh",   "asin", "asinh", "atan",  "atanh",
    "ceil",     "cos",        "cosh",    "erf",  "exp",   "expm1", "floor",
    "log",      "log10",      "log1p",   "log2", "relu",  "round", "reciprocal",
    "rsqrt",    "logsigmoid", "sigmoid", "sign", "silu",  "sin",   "sinh",
    "softsign", "sqrt",       "square",  "tan",  "tanh"};
// Their gradients read the result, or the value.
constexpr const char* kGradOfOut[] = {"exp",     "relu", "reciprocal", "rsqrt",
                                      "sigmoid", "sqrt", "tanh"};
constexpr const char* kGradOfX[] = {
    "abs",   "acos", "asin",     "atan",   "cos",  "cosh",
    "expm1", "log",  "log10",    "log1p",  "log2", "silu",
    "sin",   "sinh", "softsign", "square", "tan"};

// elementwise_ops: the op, the kernel, and what the gradient reads.
struct Binary {
  const char *op, *kernel, *grad_inputs;
};
constexpr Binary kBinary[] = {
    {"elementwise_add", "add", "X Y Out@GRAD"},
    {"elementwise_sub", "subtract", "X Y Out@GRAD"},
    {"elementwise_mul", "multiply", "X Y Out@GRAD"},
    {"elementwise_div", "divide", "X Y Out Out@GRAD"},
    {"elementwise_max", "maximum", "X Y Out@GRAD"},
    {"elementwise_min", "minimum", "X Y Out@GRAD"},
    {"elementwise_mod", "remainder", ""},
    {"elementwise_floordiv", "floor_divide", ""},
    {"elementwise_pow", "elementwise_pow", "X Y Out@GRAD"},
    {"equal", "equal", ""},
    {"not_equal", "not_equal", ""},
    {"less_than", "less_than", ""},
    {"less_equal", "less_equal", ""},
    {"greater_than", "greater_than", ""},
    {"greater_equal", "greater_equal", ""},
};

// Reductions: with dims and keep_dim, or reduce_all too.
struct Reduction {
  const char *op, *kernel;
};
constexpr Reduction kReductions[] = {
    {"reduce_max", "max"},   {"reduce_min", "min"}, {"reduce_mean", "mean"},
    {"reduce_prod", "prod"}, {"reduce_any", "any"}, {"reduce_all", "all"},
};

std::vector<std::string> Words(absl::string_view text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

void Add(const Row& row, bool trailing, std::vector<KernelSignature>* all) {
  KernelSignature signature;
  signature.op = row.op;
  signature.kernel = row.kernel;
  signature.inputs = Words(row.inputs);
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    std::string& slot = signature.inputs[i];
    if (slot[0] != '*') continue;
    slot.erase(0, 1);
    signature.typed = i;
  }
  signature.outputs = Words(row.outputs);
  signature.trailing = trailing;
  for (const std::string& word : Words(row.attrs)) {
    std::vector<std::string> parts = absl::StrSplit(word, '!');
    SignatureAttr attr;
    attr.name = parts[0];
    attr.slots.assign(parts.begin() + 1, parts.end());
    signature.attrs.push_back(std::move(attr));
  }
  all->push_back(std::move(signature));
}

void AddUnary(std::vector<KernelSignature>* all) {
  for (const char* op : kUnary) Add({op, op, "X", "", "Out"}, false, all);
  const auto add_grad = [&](const char* op, const char* inputs) {
    const std::string grad = absl::StrCat(op, "_grad");
    Add({grad.c_str(), grad.c_str(), inputs, "", "X@GRAD"}, false, all);
  };
  for (const char* op : kGradOfOut) add_grad(op, "Out Out@GRAD");
  for (const char* op : kGradOfX) add_grad(op, "X Out@GRAD");
}

void AddBinary(std::vector<KernelSignature>* all) {
  for (const Binary& row : kBinary) {
    const std::string raw = absl::StrCat(row.kernel, "_raw");
    Add({row.op, row.kernel, "X Y", "", "Out"}, true, all);
    Add({row.op, raw.c_str(), "X Y", "axis", "Out"}, false, all);
    if (*row.grad_inputs == '\0') continue;
    const std::string op = absl::StrCat(row.op, "_grad");
    const std::string kernel = absl::StrCat(row.kernel, "_grad");
    Add({op.c_str(), kernel.c_str(), row.grad_inputs, "axis", "X@GRAD Y@GRAD"},
        false, all);
    Add({op.c_str(), kernel.c_str(), row.grad_inputs, "", "X@GRAD Y@GRAD"},
        true, all);
  }
}

void AddReductions(std::vector<KernelSignature>* all) {
  for (const Reduction& row : kReductions) {
    const std::string raw = absl::StrCat(row.kernel, "_raw");
    Add({row.op, row.kernel, "X", "$dims keep_dim", "Out"}, false, all);
    Add({row.op, raw.c_str(), "X", "$dims keep_dim reduce_all", "Out"}, false,
        all);
  }
  Add({"reduce_sum", "sum", "X", "$dims out_dtype keep_dim", "Out"}, false,
      all);
  Add({"reduce_sum", "sum_raw", "X", "$dims keep_dim reduce_all out_dtype",
       "Out"},
      false, all);
}

}  // namespace

std::string KernelSignature::Text() const {
  std::vector<std::string> names;
  for (const SignatureAttr& attr : attrs) names.push_back(attr.name);
  return absl::StrCat(kernel, "(", absl::StrJoin(inputs, ", "),
                      names.empty() ? "" : "; ", absl::StrJoin(names, ", "),
                      ") -> ", absl::StrJoin(outputs, ", "));
}

const std::vector<KernelSignature>& KernelSignatures() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<KernelSignature>;
    for (const Row& row : kRows) Add(row, false, all);
    AddUnary(all);
    AddBinary(all);
    AddReductions(all);
    return all;
  }();
  return *kAll;
}

bool IsAboutExecution(absl::string_view attribute) {
  for (const char* name :
       {"use_mkldnn", "use_cudnn", "use_quantizer", "mkldnn_data_type",
        "is_test", "in_dtype", "workspace_size_MB", "exhaustive_search",
        "force_cpu", "force_fp32_output", "place_type", "is_sparse",
        "is_distributed", "remote_prefetch", "entry", "use_global_stats"})
    if (attribute == name) return true;
  return false;
}

}  // namespace pd
