// SPDX-License-Identifier: Apache-2.0
// From a config to an engine, and to its table of settings.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/settings.h"
#include "libcore/passes/pipeline.h"

namespace pd {
namespace inference {
namespace {

std::optional<AmpSpec> AmpOf(const Settings& settings) {
  AmpSpec spec;
  if (settings.gpu) {
    if (settings.gpu_precision == paddle::PaddlePrecision::kHalf)
      spec.dtype = DType::kFloat16;
    else if (settings.gpu_precision == paddle::PaddlePrecision::kBf16)
      spec.dtype = DType::kBFloat16;
    else
      return std::nullopt;
    spec.custom_black_list = settings.gpu_float32_ops;
    spec.custom_black_list.erase("feed");
    spec.custom_black_list.erase("fetch");
    return spec;
  }
  if (!settings.onednn_bf16) return std::nullopt;
  spec.dtype = DType::kBFloat16;
  return spec;
}

ModelOptions OptionsOf(const Settings& settings) {
  ModelOptions options;
  options.model_dir = settings.model_dir;
  options.prog_file = settings.prog_file;
  options.params_file = settings.params_file;
  options.program_bytes = settings.prog_buffer;
  options.params_bytes = settings.params_buffer;
  options.threads = settings.threads;
  options.kept_plans = static_cast<size_t>(settings.onednn_cache);
  options.onednn = !settings.onednn_off;
  const std::set<std::string> asked =
      settings.ir_optim && !settings.native
          ? PassesAskedFor(settings.passes->AllPasses())
          : std::set<std::string>();
  for (const Pass& pass : AllPasses())
    if (asked.count(pass.name) == 0) options.disabled_passes.insert(pass.name);
  if (settings.ir_debug || settings.passes->debug())
    options.dump_folder =
        settings.opt_cache_dir.empty() ? "." : settings.opt_cache_dir;
  options.amp = AmpOf(settings);
  options.amp_ops = settings.gpu ? settings.gpu_half_ops : settings.bf16_ops;
  options.profile = settings.profile;
  options.external_stream = settings.external_stream;
  options.place = settings.place;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
    const paddle::AnalysisConfig& config) {
  const Settings& settings = Access::Of(config);
  if (!settings.valid)
    return InvalidArgument(
        "Note: Each config can only be used for one predictor.");
  if (settings.dist.use_dist_model())
    return Unavailable("a model over several processes is not run here");
  PD_ASSIGN_OR_RETURN(std::shared_ptr<SharedModel> model,
                      SharedModel::Load(OptionsOf(settings)));
  settings.valid = false;
  return std::make_unique<Engine>(std::move(model));
}

}  // namespace inference
}  // namespace pd

namespace paddle {
namespace {

using Row = std::pair<std::string, std::string>;

const char* Word(bool x) { return x ? "true" : "false"; }

// Option and value in two columns, a line between groups.
std::string Table(const std::vector<std::vector<Row>>& groups) {
  size_t left = 6, right = 5;
  for (const auto& group : groups)
    for (const Row& row : group) {
      left = std::max(left, row.first.size());
      right = std::max(right, row.second.size());
    }
  const std::string line = absl::StrCat("+", std::string(left + 2, '-'), "+",
                                        std::string(right + 2, '-'), "+\n");
  const auto put = [&](const Row& row) {
    return absl::StrFormat("| %-*s | %-*s |\n", left, row.first, right,
                           row.second);
  };
  std::string text = line + put({"Option", "Value"}) + line;
  for (const auto& group : groups) {
    for (const Row& row : group) text += put(row);
    text += line;
  }
  return text;
}

}  // namespace

std::string AnalysisConfig::Summary() {
  const pd::inference::Settings& s = *settings_;
  std::vector<Row> model;
  if (model_from_memory()) {
    model = {{"model_file", "(from memory)"}, {"params_file", "(from memory)"}};
  } else if (!s.prog_file.empty()) {
    model = {{"model_file", s.prog_file}, {"params_file", s.params_file}};
  } else {
    model = {{"model_dir", s.model_dir}};
  }
  std::vector<Row> cpu = {
      {"cpu_math_thread", absl::StrCat(s.threads)},
      {"enable_mkldnn", Word(s.onednn)},
      {"mkldnn_cache_capacity", absl::StrCat(s.onednn_cache)},
      {"enable_mkldnn_bfloat16", Word(s.onednn_bf16)},
      {"enable_mkldnn_int8", Word(s.onednn_int8)}};
  std::vector<Row> gpu = {{"use_gpu", Word(s.gpu)}};
  if (s.gpu) {
    gpu.push_back({"gpu_device_id", absl::StrCat(s.gpu_id)});
    gpu.push_back(
        {"memory_pool_init_size", absl::StrCat(s.gpu_memory_mb, "MB")});
    gpu.push_back({"use_fp16", Word(gpu_fp16_enabled())});
  }
  gpu.push_back({"use_tensorrt", "false"});
  return Table(
      {model,
       cpu,
       gpu,
       {{"use_xpu", "false"}},
       {{"ir_optim", Word(s.ir_optim)},
        {"ir_debug", Word(s.ir_debug)},
        {"memory_optim", Word(s.memory_optim)},
        {"enable_profile", Word(s.profile)},
        {"enable_log", Word(!s.no_info)},
        {"collect_shape_range_info",
         shape_range_info_collected() ? shape_range_info_path() : "false"}}});
}

std::string AnalysisConfig::SerializeInfoCache() { return Summary(); }

}  // namespace paddle
