// SPDX-License-Identifier: Apache-2.0
// Hierarchical softmax (Morin and Bengio 2005): a class is a leaf of a binary
// tree, its probability the product of one sigmoid at each node on the way.
// With z = clip(W[node] . X + Bias[node], -40, 40) and the bit of each node:
//   PreOut[n, j] = log(1 + exp(z)),  Out[n] = sum of PreOut[n] - sum of bit * z
//   d = Out@GRAD[n] * (sigmoid(z) - bit)
//   X@GRAD[n] = sum of d * W[node];  W@GRAD[node], Bias@GRAD[node] add d * X, d
// The default tree of num_classes: with c = Label + num_classes, node j is
// (c >> (j + 1)) - 1 and bit j is bit j of c. A custom tree: row n of PathTable
// holds the nodes, up to the first negative one, and PathCode their bits.
// PreOut has a column for the longest path; Out counts log(2) for each column
// that a path lacks, as in PaddlePaddle. W_Out is W, mostly the same variable.
// With is_sparse W@GRAD is SelectedRows, one for each element of PreOut; of one
// that a path lacks it is zeros of a row that the path has.
#include "libcore/ops/loss/hierarchical_sigmoid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/loss/linear_rows.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

int64_t BitWidth(int64_t v) {
  int64_t bits = 0;
  for (; v > 0; v >>= 1) ++bits;
  return bits;
}

}  // namespace

absl::StatusOr<HsigmoidTree> ReadHsigmoidTree(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* w = context.Input("W");
  const Tensor* bias = context.Input("Bias");
  HsigmoidTree tree;
  tree.label = context.Input("Label");
  tree.table = context.Input("PathTable");
  tree.code = context.Input("PathCode");
  tree.classes = context.Attr<int32_t>("num_classes");
  if (x->rank() != 2 || w->rank() != 2 || w->dim(1) != x->dim(1) ||
      w->dtype() != x->dtype())
    return InvalidArgument(
        "'X' is %s %s, 'W' is %s %s; expected [N, D] and "
        "[nodes, D]",
        Name(x->dtype()), ToString(x->shape()), Name(w->dtype()),
        ToString(w->shape()));
  tree.nodes = w->dim(0);
  const int64_t n = x->dim(0);
  PD_RETURN_IF_ERROR(CheckLabelType("Label", tree.label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(context, "Label", tree.label->dtype(), n));
  if (tree.table == nullptr) {
    if (tree.classes < 2 || tree.nodes < tree.classes - 1)
      return InvalidArgument(
          "'W' has %d rows; a tree of %d classes has %d "
          "nodes",
          tree.nodes, tree.classes, tree.classes - 1);
    tree.depth = BitWidth(tree.classes - 1);
    tree.nodes = tree.classes - 1;
  } else {
    if (tree.code == nullptr || tree.table->rank() != 2 ||
        tree.table->dim(0) != n || tree.code->size() != tree.table->size())
      return InvalidArgument(
          "'PathTable' has shape %s; expected [%d, depth], and 'PathCode' of "
          "as many",
          ToString(tree.table->shape()), n);
    PD_RETURN_IF_ERROR(CheckLabelType("PathTable", tree.table->dtype()));
    PD_RETURN_IF_ERROR(CheckLabelType("PathCode", tree.code->dtype()));
    tree.depth = tree.table->dim(1);
  }
  if (bias != nullptr &&
      (bias->dtype() != x->dtype() || bias->size() < tree.nodes))
    return InvalidArgument("'Bias' is %s %s; expected %s of %d nodes",
                           Name(bias->dtype()), ToString(bias->shape()),
                           Name(x->dtype()), tree.nodes);
  return tree;
}

namespace {

struct Node {
  int64_t row = 0;
  bool bit = false;
};

// The nodes of sample n.
absl::Status PathOf(const HsigmoidTree& t, int64_t n, std::vector<Node>* path) {
  path->clear();
  if (t.table == nullptr) {
    const int64_t label_n = LabelAt(*t.label, n);
    if (label_n < 0 || label_n >= t.classes)
      return InvalidArgument("'Label' holds %d in row %d; expected 0 to %d",
                             label_n, n, t.classes - 1);
    const int64_t c = label_n + t.classes;
    for (int64_t j = 0; j < BitWidth(c) - 1; ++j)
      path->push_back({(c >> (j + 1)) - 1, ((c >> j) & 1) != 0});
    return absl::OkStatus();
  }
  for (int64_t j = 0; j < t.depth; ++j) {
    const int64_t node = LabelAt(*t.table, n * t.depth + j);
    if (node < 0) break;
    if (node >= t.nodes)
      return InvalidArgument(
          "'PathTable' holds %d in row %d; 'W' has %d "
          "rows",
          node, n, t.nodes);
    path->push_back({node, LabelAt(*t.code, n * t.depth + j) != 0});
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindHsigmoid(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* w = context->Input("W");
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  Tensor* pre_out = context->Output("PreOut");
  Tensor* w_out = context->Output("W_Out");
  PD_ASSIGN_OR_RETURN(const HsigmoidTree tree, ReadHsigmoidTree(*context));
  const int64_t rows = x->dim(0), width = x->dim(1);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      if (w_out != nullptr && w_out->raw() != w->raw())
        std::memcpy(w_out->raw(), w->raw(), w->bytes());
      std::vector<Node> path;
      for (int64_t n = 0; n < rows; ++n) {
        PD_RETURN_IF_ERROR(PathOf(tree, n, &path));
        const T* in = x->data<T>() + n * width;
        T sum = T(0);
        for (int64_t j = 0; j < tree.depth; ++j) {
          T z = T(0);
          const bool there = j < static_cast<int64_t>(path.size());
          if (there) {
            const Node& node = path[static_cast<size_t>(j)];
            const T* weights = w->data<T>() + node.row * width;
            if (bias != nullptr) z = bias->data<T>()[node.row];
            for (int64_t k = 0; k < width; ++k) z += weights[k] * in[k];
            z = std::min(std::max(z, T(-40)), T(40));
            if (node.bit) sum -= z;
          }
          const T softplus = std::log(T(1) + std::exp(z));
          if (pre_out != nullptr)
            pre_out->data<T>()[n * tree.depth + j] = softplus;
          sum += softplus;
        }
        out->data<T>()[n] = sum;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindHsigmoidGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* w = context->Input("W");
  Tensor* bias = context->Input("Bias");
  Tensor* pre_out = context->Input("PreOut");
  Tensor* dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const HsigmoidTree tree, ReadHsigmoidTree(*context));
  const LinearRowsGrad to{
      context->Output("X@GRAD"), context->Output("W@GRAD"),
      bias != nullptr ? context->Output("Bias@GRAD") : nullptr,
      context->Attr<bool>("is_sparse"), x->dim(0) * tree.depth};
  const int64_t rows = x->dim(0);
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "PreOut", x->dtype(), rows * tree.depth));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(), rows));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      to.Begin(*w);
      std::vector<Node> path;
      for (int64_t n = 0; n < rows; ++n) {
        PD_RETURN_IF_ERROR(PathOf(tree, n, &path));
        for (int64_t j = 0; j < tree.depth; ++j) {
          const int64_t pair = n * tree.depth + j;
          if (j >= static_cast<int64_t>(path.size())) {
            to.Skip(pair, path.empty() ? 0 : path.front().row);
            continue;
          }
          const Node& node = path[static_cast<size_t>(j)];
          const T softplus = pre_out->data<T>()[pair];
          // 1 - exp(-softplus(z)) = sigmoid(z)
          const T slope = T(1) - std::exp(-softplus) - (node.bit ? 1 : 0);
          to.Add(*x, *w, pair, n, node.row, dout->data<T>()[n] * slope);
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferHsigmoid(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.size() != 2)
    return InvalidArgument("'X' has shape %s; expected [N, D]",
                           ToString(x.shape));
  const int64_t classes = context->Attr<int32_t>("num_classes");
  int64_t depth = BitWidth(std::max<int64_t>(classes - 1, 0));
  if (context->HasInput("PathTable")) {
    const Shape& table = context->Input("PathTable").shape;
    if (table.size() != 2)
      return InvalidArgument("'PathTable' has shape %s; expected [N, depth]",
                             ToString(table));
    depth = table[1];
  }
  context->Share("W", "W_Out");
  context->SetOutput("Out", {x.shape[0], 1}, x.dtype);
  context->SetOutput("PreOut", {x.shape[0], depth}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferHsigmoidGrad(InferContext* context) {
  return InferLinearRowsGrad(context, "W", "PreOut");
}

void AddHsigmoidArguments(OpDef* op) {
  op->Input("X").Input("W").Input("Label").OptionalInput("PathTable");
  op->OptionalInput("PathCode").OptionalInput("Bias");
  op->Attr("num_classes", int32_t{2}).Attr("is_sparse", false);
}

}  // namespace

absl::Status RegisterHierarchicalSigmoid(OpRegistry* registry) {
  OpDef op("hierarchical_sigmoid");
  AddHsigmoidArguments(&op);
  op.Output("Out").IntermediateOutput("PreOut").IntermediateOutput("W_Out");
  op.Infer(InferHsigmoid).Reference(BindHsigmoid);
  op.Grad(GradSpec{"hierarchical_sigmoid_grad",
                   {"X", "W", "Label", "PathTable", "PathCode", "Bias"},
                   {"PreOut"},
                   {"Out"},
                   {"X", "W", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("hierarchical_sigmoid_grad");
  AddHsigmoidArguments(&grad);
  grad.Input("PreOut").Input("Out@GRAD").OptionalOutput("X@GRAD");
  grad.OptionalOutput("W@GRAD").OptionalOutput("Bias@GRAD");
  grad.Infer(InferHsigmoidGrad).NoGrad();
  grad.Reference(BindHsigmoidGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
