// SPDX-License-Identifier: Apache-2.0
// Children in a tree. A row of TreeInfo is a node: item, layer, parent, and
// child_nums children; 0 is no item and no child.
// Child [..., child_nums] = the children of the nodes X (0 for those without),
// LeafMask = 1 where a child is an item. No gradient.
#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferTdmChild(InferContext* context) {
  Shape shape = context->Input("X").shape;
  const TensorMeta& tree = context->Input("TreeInfo");
  PD_RETURN_IF_ERROR(CheckIndexType("X", context->Input("X").dtype));
  PD_RETURN_IF_ERROR(CheckIndexType("TreeInfo", tree.dtype));
  const int64_t children = context->Attr<int32_t>("child_nums");
  const int32_t dtype = context->Attr<int32_t>("dtype");
  if (children < 1 || tree.shape.size() != 2 ||
      (tree.shape[1] >= 0 && tree.shape[1] < 3 + children) ||
      (dtype != 2 && dtype != 3))
    return InvalidArgument(
        "attr 'child_nums' is %d, 'dtype' %d; TreeInfo has "
        "shape %s",
        children, dtype, ToString(tree.shape));
  shape.push_back(children);
  const DType type = static_cast<DType>(dtype);
  context->SetOutput("Child", shape, type);
  context->SetOutput("LeafMask", std::move(shape), type);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTdmChild(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* tree = context->Input("TreeInfo");
  Tensor* child = context->Output("Child");
  Tensor* mask = context->Output("LeafMask");
  const int64_t children = context->Attr<int32_t>("child_nums");
  return DispatchTypes<int32_t, int64_t>(
      child->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const int64_t nodes = tree->dim(0), width = tree->dim(1);
          PD_RETURN_IF_ERROR(CheckIndices("X", *x, 0, nodes));
          std::memset(child->raw(), 0, child->bytes());
          std::memset(mask->raw(), 0, mask->bytes());
          for (int64_t i = 0; i < x->size(); ++i) {
            const int64_t node = LabelAt(*x, i);
            const int64_t first = node * width + 3;
            if (node == 0 || LabelAt(*tree, first) == 0) continue;
            for (int64_t c = 0; c < children; ++c) {
              const int64_t id = LabelAt(*tree, first + c);
              if (id < 0 || id >= nodes)
                return OutOfRange("node %d has child %d; there are %d nodes",
                                  node, id, nodes);
              child->data<T>()[i * children + c] = static_cast<T>(id);
              mask->data<T>()[i * children + c] =
                  LabelAt(*tree, id * width) != 0;
            }
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterTdmChild(OpRegistry* registry) {
  OpDef op("tdm_child");
  op.Input("X").Input("TreeInfo").Output("Child").Output("LeafMask");
  op.RequiredAttr("child_nums", AttrType::kInt).Attr("dtype", int32_t{2});
  op.Infer(InferTdmChild).NoGrad().Reference(BindTdmChild);
  return registry->Add(std::move(op));
}

}  // namespace pd
