// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/text_dump.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "libcore/base/printable.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

// The shortest decimal that reads back as the same number.
std::string Shortest(float value) {
  for (int digits = 6; digits < 9; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    if (std::strtof(text.c_str(), nullptr) == value) return text;
  }
  return absl::StrFormat("%.9g", value);
}
std::string Shortest(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

// One overload for each alternative of Attribute.
struct ValuePrinter {
  std::string operator()(int32_t v) const { return absl::StrCat(v); }
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(float v) const { return Shortest(v); }
  std::string operator()(double v) const { return Shortest(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(const BlockRef& v) const {
    return absl::StrCat("block ", v.index);
  }
  std::string operator()(const BlockRefs& v) const {
    return absl::StrCat("blocks [", absl::StrJoin(v.indices, ","), "]");
  }
  std::string operator()(const VarRef& v) const {
    return absl::StrCat("%", v.name);
  }
  std::string operator()(const VarRefs& v) const {
    return Listed(v.names,
                  [](const std::string& n) { return absl::StrCat("%", n); });
  }
  std::string operator()(const std::complex<double>& v) const {
    return absl::StrCat("(", Shortest(v.real()), ",", Shortest(v.imag()), ")");
  }
  std::string operator()(const ScalarAttr& v) const {
    return std::visit(*this, v.value);
  }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    return Listed(v, *this);
  }

  template <typename List, typename Print>
  static std::string Listed(const List& values, const Print& print) {
    std::string text = "[";
    const char* comma = "";
    for (const auto& value : values) {
      absl::StrAppend(&text, comma, print(value));
      comma = ",";
    }
    return absl::StrCat(text, "]");
  }
};

std::string DumpShape(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// The type as after the colon: "float32[-1,10]", "selected_rows float32[3]".
std::string DumpType(const VarDesc& var) {
  std::string tensor = absl::StrCat(Name(var.dtype), DumpShape(var.shape));
  if (var.lod_level > 0) absl::StrAppend(&tensor, " lod ", var.lod_level);
  switch (var.kind) {
    case VarKind::kLodTensor:
      return tensor;
    case VarKind::kSelectedRows:
      return absl::StrCat("selected_rows ", tensor);
    case VarKind::kLodTensorArray:
      return absl::StrCat("tensor_array ", tensor);
    case VarKind::kSparseCoo:
      return absl::StrCat("sparse_coo ", tensor);
    case VarKind::kSparseCsr:
      return absl::StrCat("sparse_csr ", tensor);
    case VarKind::kFeedMinibatch:
      return "feed_minibatch";
    case VarKind::kFetchList:
      return "fetch_list";
    case VarKind::kStepScopes:
      return "step_scopes";
    default:
      return absl::StrCat("kind ", static_cast<int32_t>(var.kind));
  }
}

// Attributes that do not change the result: where an op came from, which
// library PaddlePaddle would run it with, roles that are headings here.
constexpr absl::string_view kNoise[] = {
    kOpRoleAttr,        "op_callstack",     "op_namescope", "exhaustive_search",
    "mkldnn_data_type", "use_addto",        "use_cudnn",    "use_mkldnn",
    "use_quantizer",    "workspace_size_MB"};

bool IsNoise(const std::string& name, const Attribute& value) {
  if (std::find(std::begin(kNoise), std::end(kNoise), name) != std::end(kNoise))
    return true;
  if (name == "op_device") return value == Attribute(std::string());
  if (name == "with_quant_attr") return value == Attribute(false);
  if (name == kOpRoleVarAttr)
    return value == Attribute(std::vector<std::string>());
  return false;
}

std::string RoleName(int32_t role) {
  if ((role & kRoleLRSched) != 0) return "lr_sched";
  if ((role & kRoleOptimize) != 0) return "optimize";
  if ((role & kRoleBackward) != 0) return "backward";
  return (role & kRoleLoss) != 0 ? "loss" : "forward";
}

// Variables that the block declares, in name order, under a heading.
void DumpVars(const char* heading, std::vector<const VarDesc*> vars,
              std::string* text) {
  if (vars.empty()) return;
  std::sort(vars.begin(), vars.end(), [](const VarDesc* a, const VarDesc* b) {
    return a->name < b->name;
  });
  absl::StrAppend(text, "  ", heading, "\n");
  for (const VarDesc* var : vars)
    absl::StrAppend(text, "    %", var->name, ":", DumpType(*var), "\n");
}

bool IsFeedFetchHolder(const VarDesc& var) {
  return var.kind == VarKind::kFeedMinibatch || var.kind == VarKind::kFetchList;
}

// params: parameters; state: other persistables; feeds: what ops only read.
void DumpVarsOf(const BlockDesc& block, std::string* text) {
  std::set<std::string> read, written;
  for (const OpDesc& op : block.ops) {
    for (const auto& slot : op.inputs)
      read.insert(slot.second.begin(), slot.second.end());
    for (const auto& slot : op.outputs)
      written.insert(slot.second.begin(), slot.second.end());
  }
  std::vector<const VarDesc*> params, state, feeds;
  for (const VarDesc& var : block.vars) {
    if (IsFeedFetchHolder(var)) continue;
    if (var.persistable)
      (var.is_parameter ? params : state).push_back(&var);
    else if (read.count(var.name) != 0 && written.count(var.name) == 0)
      feeds.push_back(&var);
  }
  DumpVars("params", params, text);
  DumpVars("state", state, text);
  DumpVars("feeds", feeds, text);
}

}  // namespace

std::string DumpAttribute(const Attribute& value) {
  return std::visit(ValuePrinter(), value);
}

std::vector<std::pair<std::string, std::string>> ShownAttributes(
    const OpDesc& op) {
  std::vector<std::pair<std::string, std::string>> shown;
  for (const auto& [name, value] : op.attrs)
    if (!IsNoise(name, value)) shown.emplace_back(name, DumpAttribute(value));
  return shown;
}

std::string DumpOp(const ProgramDesc& program, int32_t block,
                   const OpDesc& op) {
  const auto outputs = [&](const std::vector<std::string>& names) {
    return absl::StrJoin(names, ", ",
                         [&](std::string* text, const std::string& name) {
                           absl::StrAppend(text, "%", name);
                           const VarDesc* var = program.FindVar(block, name);
                           if (var != nullptr)
                             absl::StrAppend(text, ":", DumpType(*var));
                         });
  };
  std::vector<std::string> made, read, attrs;
  const auto used = [](const SlotList& slots) {
    return std::count_if(slots.begin(), slots.end(),
                         [](const auto& slot) { return !slot.second.empty(); });
  };
  const bool one = used(op.outputs) == 1;
  for (const auto& [slot, names] : op.outputs)
    if (!names.empty())
      made.push_back(one ? outputs(names)
                         : absl::StrCat(slot, "=", outputs(names)));
  for (const auto& [slot, names] : op.inputs) {
    if (names.empty()) continue;
    std::string list = absl::StrCat("%", absl::StrJoin(names, ", %"));
    if (names.size() > 1) list = absl::StrCat("[", list, "]");
    read.push_back(absl::StrCat(slot, "=", list));
  }
  for (const auto& [name, value] : ShownAttributes(op))
    attrs.push_back(absl::StrCat(name, "=", value));
  std::string text = absl::StrJoin(made, ", ");
  if (!made.empty()) absl::StrAppend(&text, " = ");
  absl::StrAppend(&text, op.type, "(", absl::StrJoin(read, ", "), ")");
  if (!attrs.empty())
    absl::StrAppend(&text, " {", absl::StrJoin(attrs, ", "), "}");
  return text;
}

std::string DumpProgram(const ProgramDesc& program) {
  std::string text = absl::StrCat("program version ", program.version, "\n");
  for (const BlockDesc& block : program.blocks) {
    absl::StrAppend(&text, "block ", block.idx);
    if (block.parent_idx >= 0)
      absl::StrAppend(&text, " in block ", block.parent_idx);
    if (block.forward_block_idx >= 0)
      absl::StrAppend(&text, ", backward of block ", block.forward_block_idx);
    absl::StrAppend(&text, "\n");
    DumpVarsOf(block, &text);
    std::string role;
    for (const OpDesc& op : block.ops) {
      const std::string here = RoleName(RoleOf(op));
      if (here != role) absl::StrAppend(&text, "  ", here, "\n");
      role = here;
      absl::StrAppend(&text, "    ", DumpOp(program, block.idx, op), "\n");
    }
  }
  return PrintableLines(text);
}

}  // namespace pd
