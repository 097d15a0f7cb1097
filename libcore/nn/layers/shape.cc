// SPDX-License-Identifier: Apache-2.0
// flatten, reshape, transpose, mean, identity; and what joins several inputs:
// add, multiply, concat.
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

OpDesc UnaryOp(const char* type, const std::string& x) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  return op;
}

absl::StatusOr<std::string> BuildFlatten(LayerContext* c) {
  const job::Flatten& p = c->layer().flatten();
  OpDesc op = UnaryOp("flatten_contiguous_range", c->input());
  // PaddlePaddle stores axes counted from the front.
  PD_ASSIGN_OR_RETURN(
      const int start,
      NormalizeAxis(p.start_axis(), c->shape().size(), "start_axis"));
  PD_ASSIGN_OR_RETURN(
      const int stop,
      NormalizeAxis(p.stop_axis(), c->shape().size(), "stop_axis"));
  op.attrs = {{"start_axis", int32_t{start}}, {"stop_axis", int32_t{stop}}};
  return c->Append(std::move(op), {"Out", "XShape"});
}

absl::StatusOr<std::string> BuildReshape(LayerContext* c) {
  const auto& shape = c->layer().reshape().shape();
  OpDesc op = UnaryOp("reshape2", c->input());
  op.attrs["shape"] = std::vector<int32_t>(shape.begin(), shape.end());
  return c->Append(std::move(op), {"Out", "XShape"});
}

absl::StatusOr<std::string> BuildTranspose(LayerContext* c) {
  const auto& perm = c->layer().transpose().perm();
  OpDesc op = UnaryOp("transpose2", c->input());
  op.attrs["axis"] = std::vector<int32_t>(perm.begin(), perm.end());
  return c->Append(std::move(op), {"Out", "XShape"});
}

absl::StatusOr<std::string> BuildMean(LayerContext* c) {
  const job::Mean& p = c->layer().mean();
  OpDesc op = UnaryOp("reduce_mean", c->input());
  op.attrs = {{"dim", std::vector<int32_t>(p.axis().begin(), p.axis().end())},
              {"keep_dim", p.keepdim()},
              {"reduce_all", p.axis().empty()}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildIdentity(LayerContext* c) {
  return c->input();
}

absl::StatusOr<std::string> BuildJoin(LayerContext* c) {
  if (c->layer().has_concat()) {
    OpDesc op;
    op.type = "concat";
    std::vector<std::string> names;
    for (size_t i = 0; i < c->input_count(); ++i) names.push_back(c->input(i));
    op.SetInput("X", std::move(names));
    op.attrs["axis"] = int32_t{c->layer().concat().axis()};
    return c->Append(std::move(op), {"Out"});
  }
  const char* type =
      c->layer().has_add() ? "elementwise_add" : "elementwise_mul";
  std::string sum = c->input(0);
  for (size_t i = 1; i < c->input_count(); ++i) {
    PD_ASSIGN_OR_RETURN(sum, c->Binary(type, sum, c->input(i)));
  }
  return sum;
}

}  // namespace

void AddShapeLayers(LayerTable* table) {
  (*table)[job::Layer::kFlatten] = {BuildFlatten};
  (*table)[job::Layer::kReshape] = {BuildReshape};
  (*table)[job::Layer::kTranspose] = {BuildTranspose};
  (*table)[job::Layer::kMean] = {BuildMean};
  (*table)[job::Layer::kIdentity] = {BuildIdentity};
  for (const int kind :
       {job::Layer::kAdd, job::Layer::kMultiply, job::Layer::kConcat})
    (*table)[kind] = {BuildJoin, 2, kAnyInputs};
}

}  // namespace pd
