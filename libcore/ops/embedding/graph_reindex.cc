// SPDX-License-Identifier: Apache-2.0
// The nodes of a sampled graph numbered anew: X's nodes 0, 1, ..., then those
// of Neighbors that are not among them, as they appear.
//   Out_Nodes: the nodes in the new order; how many is known when the op runs
//   Reindex_Src: the new numbers of Neighbors
//   Reindex_Dst: for each neighbor the new number of its node: the first
//     Count[0] are X[0]'s, ...; Count may go through X several times, once for
//     each kind of edge
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferReindex(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& neighbors = context->Input("Neighbors");
  PD_RETURN_IF_ERROR(CheckIndexType("X", x.dtype));
  PD_RETURN_IF_ERROR(CheckIndexType("Count", context->Input("Count").dtype));
  if (x.shape.size() != 1 || neighbors.shape.size() != 1 ||
      neighbors.dtype != x.dtype)
    return InvalidArgument(
        "X is %s %s, Neighbors %s %s; expected vectors of "
        "one dtype",
        Name(x.dtype), ToString(x.shape), Name(neighbors.dtype),
        ToString(neighbors.shape));
  context->SetOutput("Reindex_Src", neighbors.shape, x.dtype);
  context->SetOutput("Reindex_Dst", neighbors.shape, x.dtype);
  context->SetOutput("Out_Nodes", {-1}, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReindex(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* neighbors = context->Input("Neighbors");
  Tensor* count = context->Input("Count");
  Tensor* src = context->Output("Reindex_Src");
  Tensor* dst = context->Output("Reindex_Dst");
  Tensor* nodes = context->Output("Out_Nodes");
  return DispatchTypes<int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const int64_t n = x->size(), edges = neighbors->size();
          PD_RETURN_IF_ERROR(CheckIndices("Count", *count, 0, edges + 1));
          int64_t total = 0;
          for (int64_t i = 0; i < count->size(); ++i)
            total += LabelAt(*count, i);
          if (total != edges || n == 0 || count->size() % n != 0)
            return InvalidArgument(
                "%d nodes, %d counts that add up to %d, %d neighbors", n,
                count->size(), total, edges);
          std::unordered_map<T, T> number;
          std::vector<T> order(x->data<T>(), x->data<T>() + n);
          for (int64_t i = 0; i < n; ++i)
            number[x->data<T>()[i]] = static_cast<T>(i);
          PD_RETURN_IF_ERROR(src->Resize(x->dtype(), {edges}));
          PD_RETURN_IF_ERROR(dst->Resize(x->dtype(), {edges}));
          for (int64_t i = 0; i < edges; ++i) {
            const T node = neighbors->data<T>()[i];
            const auto added =
                number.emplace(node, static_cast<T>(order.size()));
            if (added.second) order.push_back(node);
            src->data<T>()[i] = added.first->second;
          }
          T* to = dst->data<T>();
          for (int64_t i = 0; i < count->size(); ++i)
            to = std::fill_n(to, LabelAt(*count, i),
                             number[x->data<T>()[i % n]]);
          PD_RETURN_IF_ERROR(
              nodes->Resize(x->dtype(), {static_cast<int64_t>(order.size())}));
          std::copy(order.begin(), order.end(), nodes->data<T>());
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterGraphReindex(OpRegistry* registry) {
  OpDef op("graph_reindex");
  op.Input("X").Input("Neighbors").Input("Count");
  op.OptionalInput("HashTable_Value").OptionalInput("HashTable_Index");
  op.Output("Reindex_Src").Output("Reindex_Dst").Output("Out_Nodes");
  op.Infer(InferReindex).ShapeFromData().NoGrad().Reference(BindReindex);
  return registry->Add(std::move(op));
}

}  // namespace pd
