// SPDX-License-Identifier: Apache-2.0
// The collectives by the names that they have in PaddlePaddle's newer library
// of operators: all_gather, all_reduce, all_to_all, broadcast, reduce and
// reduce_scatter are c_allgather, c_allreduce_..., alltoall, c_broadcast,
// c_reduce_... and c_reducescatter. reduce_type is 0 (sum), 1 (max), 2 (min) or
// 3 (prod). No gradients, as there.
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

struct NamedCollective {
  const char *type, *part;
  const char* attr;       // beside ring_id; null: none
  const char* part_attr;  // its name there
};
constexpr NamedCollective kNamedCollectives[] = {
    {"all_gather", "c_allgather", "nranks", "nranks"},
    {"all_to_all", "alltoall", nullptr, nullptr},
    {"broadcast", "c_broadcast", "root", "root"},
    {"reduce_scatter", "c_reducescatter", "nranks", "nranks"},
    {"all_reduce", "c_allreduce_", nullptr, nullptr},
    {"reduce", "c_reduce_", "root_id", "root_id"},
};

absl::Status ComposeCollective(Composition* parts) {
  const NamedCollective* row = kNamedCollectives;
  while (parts->op().type != row->type) ++row;
  std::string part = row->part;
  if (part.back() == '_') {
    const char* const reductions[] = {"sum", "max", "min", "prod"};
    const int32_t type = parts->Attr<int32_t>("reduce_type");
    if (type < 0 || type > 3)
      return InvalidArgument(
          "attr 'reduce_type' is %d; expected 0 (sum), 1 (max), 2 (min) or 3 "
          "(prod)",
          type);
    part += reductions[type];
  }
  Composition::Attrs attrs = {{"ring_id", parts->Attr<int32_t>("ring_id")}};
  if (row->attr != nullptr)
    attrs[row->part_attr] = parts->Attr<int32_t>(row->attr);
  parts->Add(part, {{"X", {parts->In("x")}}}, {{"Out", {parts->Out("out")}}},
             std::move(attrs));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAllReduce(OpRegistry* registry) {
  for (const NamedCollective& row : kNamedCollectives) {
    OpDef op(row.type);
    op.Input("x").Output("out").Attr("ring_id", int32_t{0});
    if (row.attr != nullptr)
      op.Attr(row.attr,
              int32_t{std::string(row.type) == "reduce_scatter" ? 1 : 0});
    if (row.part[std::string(row.part).size() - 1] == '_')
      op.Attr("reduce_type", int32_t{0});
    op.Infer(InferComposed<ComposeCollective>).NoGrad();
    op.Reference(BindComposed<ComposeCollective>);
    op.With(Trait::kCommunicates);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
