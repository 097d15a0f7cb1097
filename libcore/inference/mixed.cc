// SPDX-License-Identifier: Apache-2.0
// ConvertToMixedPrecision: a saved model with weights of 16 bits.
#include <set>
#include <utility>

#include "formats/pdmodel.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/file_set.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"

namespace pd {
namespace inference {
namespace {

absl::StatusOr<DType> HalfOf(paddle_infer::PrecisionType precision) {
  if (precision == paddle_infer::PrecisionType::kHalf) return DType::kFloat16;
  if (precision == paddle_infer::PrecisionType::kBf16) return DType::kBFloat16;
  return InvalidArgument(
      "ConvertToMixedPrecision: expected PrecisionType::kHalf or kBf16");
}

// The ops in 16 bits, and weights that only they read.
absl::Status Rewrite(const AmpSpec& spec, LoadedModel* model) {
  PD_ASSIGN_OR_RETURN(const auto registry, MakeRegistry());
  ProgramDesc* program = &model->program;
  std::vector<std::string> wide;
  for (const std::string& name : model->fetches) {
    const VarDesc* var = program->global().FindVar(name);
    if (var != nullptr && var->dtype == DType::kFloat32) wide.push_back(name);
  }
  PD_RETURN_IF_ERROR(MixPrecision(*registry, spec, program));
  UpcastOutputs(wide, program);
  for (const ParameterCast& cast : TakeParameterCasts(program)) {
    const auto value = model->params.find(cast.from);
    if (value == model->params.end())
      return NotFound("parameter '%s' has no value", cast.from);
    model->params[cast.to] = RoundedTo(cast.dtype, value->second);
  }
  std::vector<std::string> kept = model->feeds;
  kept.insert(kept.end(), model->fetches.begin(), model->fetches.end());
  DropUnused(kept, program);
  NamedArrays used;
  for (const std::string& name : PersistableTensors(*program)) {
    const auto value = model->params.find(name);
    if (value == model->params.end())
      return NotFound("parameter '%s' has no value", name);
    used.insert(*value);
  }
  model->params = std::move(used);
  return AddFeedFetch({model->feeds, model->fetches, model->classes}, program);
}

absl::Status Convert(const LoadedModel& model, const std::string& program_file,
                     const std::string& params_file) {
  FileSet files;
  PD_ASSIGN_OR_RETURN(const std::string program, files.Add(program_file));
  PD_ASSIGN_OR_RETURN(const std::string params, files.Add(params_file));
  PD_RETURN_IF_ERROR(WriteTensors(params, model.params));
  PD_RETURN_IF_ERROR(WriteProgram(program, model.program));
  return files.Commit();
}

}  // namespace
}  // namespace inference
}  // namespace pd

namespace paddle_infer {

void ConvertToMixedPrecision(const std::string& model_file,
                             const std::string& params_file,
                             const std::string& mixed_model_file,
                             const std::string& mixed_params_file,
                             PrecisionType mixed_precision,
                             PlaceType /*backend*/, bool keep_io_types,
                             std::unordered_set<std::string> black_list) {
  pd::inference::Border([&]() -> absl::Status {
    if (!keep_io_types)
      return pd::Unimplemented(
          "ConvertToMixedPrecision: inputs and outputs keep their types; "
          "expected keep_io_types = true");
    pd::AmpSpec spec;
    spec.level = pd::AmpSpec::Level::kO2;
    PD_ASSIGN_OR_RETURN(spec.dtype, pd::inference::HalfOf(mixed_precision));
    spec.custom_black_list.insert(black_list.begin(), black_list.end());
    PD_ASSIGN_OR_RETURN(
        pd::LoadedModel model,
        pd::LoadModelFiles(model_file, params_file, pd::Alignment::kNatural));
    PD_RETURN_IF_ERROR(pd::Annotate(pd::inference::Rewrite(spec, &model),
                                    "'" + model.path + "'"));
    return pd::inference::Convert(model, mixed_model_file, mixed_params_file);
  });
}

}  // namespace paddle_infer
