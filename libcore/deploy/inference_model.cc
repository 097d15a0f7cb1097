// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/inference_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

absl::Status CheckParam(const VarDesc& var, const Array& value) {
  if (value.dtype != var.dtype)
    return InvalidArgument("parameter '%s' is %s; the program declares %s",
                           var.name, Name(value.dtype), Name(var.dtype));
  // PaddlePaddle's versions differ on [] and [1].
  if (!IsDynamic(var.shape) && NumElements(var.shape) != value.size())
    return InvalidArgument(
        "parameter '%s' has shape %s; the program declares %s", var.name,
        ToString(value.shape), ToString(var.shape));
  return absl::OkStatus();
}

absl::StatusOr<NamedArrays> ParamsOf(const ProgramDesc& program,
                                     const NamedArrays& params) {
  NamedArrays found;
  std::vector<std::string> missing;
  for (const BlockDesc& block : program.blocks) {
    for (const VarDesc& var : block.vars) {
      if (!var.persistable || var.kind != VarKind::kLodTensor) continue;
      const auto it = params.find(var.name);
      if (it == params.end()) {
        missing.push_back(absl::StrCat("'", var.name, "'"));
        continue;
      }
      PD_RETURN_IF_ERROR(CheckParam(var, it->second));
      found.insert(*it);
    }
  }
  if (!missing.empty())
    return NotFound("no value for parameter %s", absl::StrJoin(missing, ", "));
  return found;
}

}  // namespace

absl::StatusOr<InferenceModel> Freeze(const ProgramDesc& program,
                                      const FeedFetch& names,
                                      const NamedArrays& params) {
  if (names.fetches.empty())
    return InvalidArgument("no output is named; expected at least one");
  InferenceModel model;
  model.names = names;
  // Pruned first: a fetch that only training computes is found missing by its
  // own name.
  PD_ASSIGN_OR_RETURN(model.program,
                      Prune(CloneForTest(program), names.feeds, names.fetches));
  PD_ASSIGN_OR_RETURN(model.params, ParamsOf(model.program, params));
  return model;
}

absl::Status SetInputShapes(const OpRegistry& registry,
                            const std::map<std::string, Shape>& shapes,
                            InferenceModel* model) {
  const auto& feeds = model->names.feeds;
  BlockDesc& block = model->program.global();
  for (const auto& [name, shape] : shapes) {
    if (std::find(feeds.begin(), feeds.end(), name) == feeds.end())
      return NotFound("'%s' is not an input of the model; its inputs are '%s'",
                      name, absl::StrJoin(feeds, "', '"));
    for (const int64_t extent : shape)
      if (extent < -1)
        return InvalidArgument(
            "input '%s' has shape %s; extents must be 0 or more, or -1", name,
            ToString(shape));
    block.FindVar(name)->shape = shape;
  }
  for (const OpDesc& op : block.ops)
    PD_RETURN_IF_ERROR(InferOp(registry, op, 0, &model->program));
  return absl::OkStatus();
}

}  // namespace pd
