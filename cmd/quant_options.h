// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_QUANT_OPTIONS_H_
#define PD_CMD_QUANT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/tool.h"

namespace pd {

struct QuantOptions {
  CommonOptions common;
  std::string model, params_file;
  std::string config;  ///< a job whose network takes bare parameters
  std::string calib;   ///< npz, a job, or a folder of pictures
  std::vector<std::string> pictures;  ///< files and folders, in place of calib
  std::string calib_set = "train";
  std::optional<int64_t> batch, batches;
  std::string out;
  std::string to = "paddle";
  int64_t opset = 13;
  std::string algo = "hist";
  double percentile = 0.99999;
  std::string weights = "channel_wise_abs_max";
  bool weight_only = false, dynamic = false;
  std::string bits = "8";
  std::vector<std::string> skip;
  bool fold_batch_norms = false, keep_batch_norms = false, equalize = false;
  bool bias_correction = false;
  std::string round = "nearest";
  std::string compare;  ///< a job
  std::string metric;
  std::optional<double> max_drop, min_sqnr;
  std::optional<double> latency;  ///< seconds
  std::string report;             ///< an HTML file
};

Tool QuantTool(QuantOptions* options);

}  // namespace pd

#endif  // PD_CMD_QUANT_OPTIONS_H_
