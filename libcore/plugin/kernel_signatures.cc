// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/kernel_signatures.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pd {
namespace {

// Operators of two inputs: the op, the kernel, and what the gradient reads.
struct BinaryRow {
  const char *op, *kernel, *grad_inputs;
};
constexpr BinaryRow kBinary[] = {
    {"elementwise_add", "add", "X, Y, Out@GRAD"},
    {"elementwise_sub", "subtract", "X, Y, Out@GRAD"},
    {"elementwise_mul", "multiply", "X, Y, Out@GRAD"},
    {"elementwise_div", "divide", "X, Y, Out, Out@GRAD"},
    {"elementwise_max", "maximum", "X, Y, Out@GRAD"},
    {"elementwise_min", "minimum", "X, Y, Out@GRAD"},
    {"elementwise_mod", "remainder", ""},
    {"elementwise_floordiv", "floor_divide", ""},
    {"elementwise_pow", "elementwise_pow", "X, Y, Out@GRAD"},
    {"equal", "equal", ""},
    {"not_equal", "not_equal", ""},
    {"less_than", "less_than", ""},
    {"less_equal", "less_equal", ""},
    {"greater_than", "greater_than", ""},
    {"greater_equal", "greater_equal", ""},
};

// Reductions of axes "$dims", with reduce_all or without.
struct ReductionRow {
  const char *op, *kernel;
};
constexpr ReductionRow kReductions[] = {
    {"reduce_max", "max"},   {"reduce_min", "min"}, {"reduce_mean", "mean"},
    {"reduce_prod", "prod"}, {"reduce_any", "any"}, {"reduce_all", "all"},
};

// The words of a list; a mark is taken off, and its index kept.
std::vector<std::string> SignatureSlots(absl::string_view text, size_t* marked,
                                        bool* is_marked) {
  std::vector<std::string> slots =
      absl::StrSplit(text, ", ", absl::SkipEmpty());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i][0] != '*') continue;
    slots[i].erase(0, 1);
    *marked = i;
    *is_marked = true;
  }
  return slots;
}

SignatureAttr SignatureAttrOf(absl::string_view text) {
  SignatureAttr attr;
  std::vector<std::string> parts = absl::StrSplit(text, '!');
  attr.slots.assign(parts.begin() + 1, parts.end());
  const std::pair<std::string, std::string> named =
      absl::StrSplit(parts[0], absl::MaxSplits('=', 1));
  attr.name = named.first;
  if (!named.second.empty()) attr.fixed = named.second == "true";
  return attr;
}

// A row "OP: KERNEL(INPUTS; ATTRIBUTES) -> OUTPUTS".
KernelSignature ParseSignature(absl::string_view row) {
  KernelSignature signature;
  const std::pair<absl::string_view, absl::string_view> of_op =
      absl::StrSplit(row, absl::MaxSplits(": ", 1));
  const std::pair<absl::string_view, absl::string_view> outer =
      absl::StrSplit(of_op.second, absl::MaxSplits(") -> ", 1));
  const std::pair<absl::string_view, absl::string_view> call =
      absl::StrSplit(outer.first, absl::MaxSplits('(', 1));
  const std::pair<absl::string_view, absl::string_view> lists =
      absl::StrSplit(call.second, absl::MaxSplits("; ", 1));
  signature.op = std::string(of_op.first);
  signature.kernel = std::string(call.first);
  bool by_input = false;
  size_t output = 0;
  signature.inputs = SignatureSlots(lists.first, &signature.typed, &by_input);
  signature.outputs =
      SignatureSlots(outer.second, &output, &signature.typed_by_output);
  if (signature.typed_by_output) signature.typed = output;
  for (absl::string_view attr :
       absl::StrSplit(lists.second, ", ", absl::SkipEmpty()))
    signature.attrs.push_back(SignatureAttrOf(attr));
  return signature;
}

void AddBinary(std::deque<KernelSignature>* all) {
  const auto add = [&](const std::string& row, bool trailing) {
    all->push_back(ParseSignature(row));
    all->back().trailing = trailing;
  };
  for (const BinaryRow& row : kBinary) {
    const std::string start = absl::StrCat(row.op, ": ", row.kernel);
    add(absl::StrCat(start, "(X, Y) -> Out"), true);
    add(absl::StrCat(start, "(X, Y; axis) -> Out"), false);
    add(absl::StrCat(start, "_raw(X, Y; axis) -> Out"), false);
    if (*row.grad_inputs == '\0') continue;
    const std::string grad =
        absl::StrCat(row.op, "_grad: ", row.kernel, "_grad(", row.grad_inputs);
    add(absl::StrCat(grad, "; axis) -> X@GRAD, Y@GRAD"), false);
    add(absl::StrCat(grad, ") -> X@GRAD, Y@GRAD"), true);
  }
}

void AddReductions(std::deque<KernelSignature>* all) {
  const auto add = [&](const ReductionRow& row, const char* arguments) {
    all->push_back(ParseSignature(
        absl::StrCat(row.op, ": ", row.kernel, arguments, " -> Out")));
  };
  for (const ReductionRow& row : kReductions) {
    add(row, "(X; $dims, keep_dim)");
    add(row, "_raw(X; $dims, keep_dim, reduce_all)");
    add(row, "(X; $dims, keep_dim, reduce_all)");
  }
  const ReductionRow sum = {"reduce_sum", "sum"};
  add(sum, "(X; $dims, out_dtype, keep_dim)");
  add(sum, "_raw(X; $dims, keep_dim, reduce_all, out_dtype)");
}

std::deque<KernelSignature>& AllSignatures() {
  static auto* const all = [] {
    auto* rows = new std::deque<KernelSignature>;
    for (const SignatureText& file : SignatureFiles())
      for (absl::string_view row :
           absl::StrSplit(file.text, '\n', absl::SkipEmpty()))
        if (row[0] != '#') rows->push_back(ParseSignature(row));
    AddBinary(rows);
    AddReductions(rows);
    return rows;
  }();
  return *all;
}

}  // namespace

std::string KernelSignature::Text() const {
  std::vector<std::string> names;
  for (const SignatureAttr& attr : attrs)
    names.push_back(
        attr.fixed.has_value()
            ? absl::StrCat(attr.name, *attr.fixed ? "=true" : "=false")
            : attr.name);
  return absl::StrCat(kernel, "(", absl::StrJoin(inputs, ", "),
                      names.empty() ? "" : "; ", absl::StrJoin(names, ", "),
                      ") -> ", absl::StrJoin(outputs, ", "));
}

const std::deque<KernelSignature>& KernelSignatures() {
  return AllSignatures();
}

void AddKernelSignature(KernelSignature signature) {
  AllSignatures().push_back(std::move(signature));
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
