// SPDX-License-Identifier: Apache-2.0
// Settings of PaddlePaddle's quantization while a predictor is made. Here a
// model is quantized by pd-quant; the settings are kept and not acted on.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_MKLDNN_QUANTIZER_CONFIG_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_MKLDNN_QUANTIZER_CONFIG_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "paddle_infer_declare.h"

namespace paddle {

struct PaddleTensor;

enum class ScaleAlgo { NONE, MAX, MAX_CH, MAX_CH_T, KL };

class PD_INFER_DECL MkldnnQuantizerConfig {
 public:
  MkldnnQuantizerConfig() = default;
  void SetScaleAlgo(std::string op_type, std::string name, ScaleAlgo algo) {
    rules_[std::move(op_type)][std::move(name)] = algo;
  }
  ScaleAlgo scale_algo(const std::string& op_type,
                       const std::string& name) const {
    const auto op = rules_.find(op_type);
    if (op == rules_.end()) return default_scale_algo_;
    const auto rule = op->second.find(name);
    return rule == op->second.end() ? default_scale_algo_ : rule->second;
  }
  void SetWarmupData(std::shared_ptr<std::vector<PaddleTensor>> data) {
    warmup_data_ = std::move(data);
  }
  std::shared_ptr<std::vector<PaddleTensor>> warmup_data() const {
    return warmup_data_;
  }
  void SetWarmupBatchSize(int size) { warmup_batch_size_ = size; }
  int warmup_batch_size() const { return warmup_batch_size_; }
  void SetEnabledOpTypes(std::unordered_set<std::string> types) {
    enabled_op_types_ = std::move(types);
  }
  const std::unordered_set<std::string>& enabled_op_types() const {
    return enabled_op_types_;
  }
  void SetExcludedOpIds(std::unordered_set<int> ids) {
    excluded_op_ids_ = std::move(ids);
  }
  const std::unordered_set<int>& excluded_op_ids() const {
    return excluded_op_ids_;
  }
  void SetDefaultScaleAlgo(ScaleAlgo algo) { default_scale_algo_ = algo; }
  ScaleAlgo default_scale_algo() const { return default_scale_algo_; }

 private:
  std::map<std::string, std::map<std::string, ScaleAlgo>> rules_;
  std::unordered_set<std::string> enabled_op_types_;
  std::unordered_set<int> excluded_op_ids_;
  std::shared_ptr<std::vector<PaddleTensor>> warmup_data_;
  int warmup_batch_size_ = 1;
  ScaleAlgo default_scale_algo_ = ScaleAlgo::MAX;
};

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_MKLDNN_QUANTIZER_CONFIG_H_
