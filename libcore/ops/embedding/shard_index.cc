// SPDX-License-Identifier: Apache-2.0
// Ids of one shard: index_num ids are dealt to nshards shards of
// ceil(index_num / nshards) each. Out = X's place in shard shard_id, or
// ignore_value when it is in another one. No gradient.
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferShardIndex(InferContext* context) {
  const int64_t ids = context->Attr<int32_t>("index_num");
  const int64_t shards = context->Attr<int32_t>("nshards");
  const int64_t shard = context->Attr<int32_t>("shard_id");
  if (ids < 1 || shards < 1 || shard < 0 || shard >= shards)
    return InvalidArgument(
        "attrs 'index_num', 'nshards', 'shard_id' are %d, %d, %d", ids, shards,
        shard);
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(CheckIndexType("X", x.dtype));
  if (x.shape.empty() || (x.shape.back() != 1 && x.shape.back() != -1))
    return InvalidArgument("X has shape %s; expected a last extent of 1",
                           ToString(x.shape));
  return InferUnary(context);
}

absl::StatusOr<Step> BindShardIndex(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  const int64_t ids = context->Attr<int32_t>("index_num");
  const int64_t shards = context->Attr<int32_t>("nshards");
  const int64_t shard = context->Attr<int32_t>("shard_id");
  const int64_t ignored = context->Attr<int32_t>("ignore_value");
  const int64_t size = (ids + shards - 1) / shards;
  return DispatchTypes<int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(CheckIndices("X", *x, 0, ids));
          for (int64_t i = 0; i < x->size(); ++i) {
            const int64_t id = x->data<T>()[i];
            out->data<T>()[i] =
                static_cast<T>(id / size == shard ? id % size : ignored);
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterShardIndex(OpRegistry* registry) {
  OpDef op("shard_index");
  op.Input("X").Output("Out");
  for (const char* name : {"index_num", "nshards", "shard_id"})
    op.RequiredAttr(name, AttrType::kInt);
  op.Attr("ignore_value", int32_t{-1});
  op.Infer(InferShardIndex).NoGrad().Reference(BindShardIndex);
  return registry->Add(std::move(op));
}

}  // namespace pd
