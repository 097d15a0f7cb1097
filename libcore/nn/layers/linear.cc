// SPDX-License-Identifier: Apache-2.0
// linear: x W + b, W [in_features, out_features]; embedding: rows of a table.
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"

namespace pd {
namespace {

absl::StatusOr<std::string> BuildLinear(LayerContext* c) {
  const job::Linear& p = c->layer().linear();
  PD_RETURN_IF_ERROR(c->ExpectRank(1, 64, "at least one axis"));
  const int64_t given = p.in_features();
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(-1, p.has_in_features() ? &given : nullptr,
                                "input features", "in_features"));
  return Affine({in, p.out_features(), &p.weight_attr(),
                 p.bias() ? &p.bias_attr() : nullptr},
                c->input(), c);
}

absl::StatusOr<std::string> BuildEmbedding(LayerContext* c) {
  const job::Embedding& p = c->layer().embedding();
  if (c->dtype() != DType::kInt64 && c->dtype() != DType::kInt32)
    return c->Misfit(std::string("integers (int64 or int32), not ") +
                     std::string(Name(c->dtype())));
  int64_t padding = -1;
  if (p.has_padding_idx()) {
    padding = p.padding_idx();
    if (padding < 0) padding += p.num_embeddings();
    if (padding < 0 || padding >= p.num_embeddings())
      return InvalidArgument("'padding_idx' is %d; there are %d rows",
                             p.padding_idx(), p.num_embeddings());
  }
  if (p.sparse() && (p.weight_attr().has_weight_norm() ||
                     p.weight_attr().has_spectral_norm()))
    return InvalidArgument(
        "'sparse' does not go with weight_norm and spectral_norm, which change "
        "all rows in each step");
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(p.weight_attr(), {p.num_embeddings(), p.embedding_dim()},
                XavierUniformInitializer()));
  c->AddOutput("weight", weight);
  OpDesc op;
  op.type = "lookup_table_v2";
  op.SetInput("Ids", {c->input()});
  op.SetInput("W", {weight});
  op.attrs = {{"padding_idx", padding}, {"is_sparse", p.sparse()}};
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

void AddLinearLayers(LayerTable* table) {
  (*table)[job::Layer::kLinear] = {BuildLinear};
  (*table)[job::Layer::kEmbedding] = {BuildEmbedding};
}

}  // namespace pd
