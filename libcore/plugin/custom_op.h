// SPDX-License-Identifier: Apache-2.0
// An operator that a plug-in declares, checked, and the table of all of them in
// the process. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_CUSTOM_OP_H_
#define PD_LIBCORE_PLUGIN_CUSTOM_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/op_def.h"
#include "libcore/plugin/api/paddle_op_meta_info.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {

struct CustomOp : PluginPart {
  struct Slot {
    std::string name;  // decorated: "X@VECTOR"
    bool is_list = false;
    bool is_optional = false;
    int partner = -1;  // the output written over this input, or the reverse
  };
  struct Attr {
    std::string name, type;  // "axis", "int64_t"
    AttrType stored = AttrType::kInt;
  };

  const paddle::detail::OpDeclaration* declaration = nullptr;
  std::vector<Slot> inputs, outputs;
  std::vector<Attr> attrs;
  bool is_gradient = false;

  /// -1: there is none.
  int FindInput(const std::string& name) const;
  int FindOutput(const std::string& name) const;
};

/// The part of a decorated output of a gradient op that names an input of its
/// forward op: "X" of "X@GRAD" and of "X@GRAD@NEW"; "" of others.
std::string GradientOf(const std::string& output);

/// Checks a declaration; errors do not name the op. `forward` is the op whose
/// gradient it declares, or null.
absl::StatusOr<CustomOp> CheckDeclaration(
    std::string type, const paddle::detail::OpDeclaration& declaration,
    const CustomOp* forward);

/// The description by which the library knows it. `gradient` is the op of its
/// gradient, or null.
OpDef OpDefOf(const CustomOp& op, const CustomOp* gradient);

/// A checked op of the process, by its type; it stays. Null: there is none.
const CustomOp* FindCustomOp(absl::string_view type);

/// The default of an attribute that a program lacks.
Attribute DefaultOf(const CustomOp::Attr& attr);
/// The values of the attributes that a normalized op has, in the order of the
/// declaration.
std::vector<paddle::any> AttrsOf(const CustomOp& op, const OpDesc& desc);

/// Shapes and types of inputs, by slot; those of slots that are absent are
/// empty lists.
struct CustomTypes {
  std::vector<std::vector<std::vector<int64_t>>> shapes;
  std::vector<std::vector<phi::DataType>> dtypes;
};
/// The same of its outputs, of which there are `counts` by slot.
absl::StatusOr<CustomTypes> InferCustomOp(const CustomOp& op,
                                          const std::vector<paddle::any>& attrs,
                                          const CustomTypes& inputs,
                                          const std::vector<size_t>& counts);

/// OpDef's functions.
absl::Status InferCustom(InferContext* context);
absl::StatusOr<Step> BindCustom(BindContext* context);
GradMaker MakeCustomGradient(const CustomOp& forward, const CustomOp& gradient);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_CUSTOM_OP_H_
