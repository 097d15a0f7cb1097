// SPDX-License-Identifier: Apache-2.0
// The rewrites of a program that a predictor makes, by name. Names are ours
// ("fold_batch_norms"); PaddlePaddle's ("conv_bn_fuse_pass") mean the one of
// ours that does the same, where there is one.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_PASS_BUILDER_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_PASS_BUILDER_H_

#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "paddle_infer_declare.h"

namespace paddle {

/// A list of names. The order in which passes run is fixed; a pass whose name
/// is in the list, or stands for one in it, runs.
class PD_INFER_DECL PaddlePassBuilder {
 public:
  explicit PaddlePassBuilder(const std::vector<std::string>& passes);
  PaddlePassBuilder(const PaddlePassBuilder&);
  PaddlePassBuilder& operator=(const PaddlePassBuilder&);
  virtual ~PaddlePassBuilder();

  void SetPasses(std::initializer_list<std::string> passes);
  void AppendPass(const std::string& pass_type);
  /// An index behind the end appends.
  void InsertPass(size_t idx, const std::string& pass_type);
  /// InvalidArgument when there is no such index.
  void DeletePass(size_t idx);
  /// A name that is not in the list is no error.
  void DeletePass(const std::string& pass_type);
  void ClearPasses();
  void AppendAnalysisPass(const std::string& pass);
  /// Writes the program before and after each pass, as SwitchIrDebug does.
  void TurnOnDebug();
  bool debug() const { return debug_; }
  std::string DebugString();
  const std::vector<std::string>& AllPasses() const { return passes_; }
  std::vector<std::string> AnalysisPasses() const { return analysis_passes_; }
  const std::unordered_set<std::string>& GetAllDeletedPasses() const {
    return deleted_passes_;
  }

 protected:
  std::vector<std::string> analysis_passes_;
  std::vector<std::string> passes_;
  std::unordered_set<std::string> deleted_passes_;
  bool debug_ = false;
};

/// The passes of a place.
class PD_INFER_DECL PassStrategy : public PaddlePassBuilder {
 public:
  explicit PassStrategy(const std::vector<std::string>& passes);
  PassStrategy(const PassStrategy&);
  ~PassStrategy() override;
  virtual void EnableCUDNN() {}
  virtual void EnableMKLDNN() { use_mkldnn_ = true; }
  virtual void DisableMKLDNN() { use_mkldnn_ = false; }
  virtual void EnableMkldnnQuantizer() {}
  virtual void EnableMkldnnBfloat16() {}
  virtual void EnableMkldnnInt8() {}
  virtual void DisableMkldnnFcPasses() {}
  bool use_gpu() const { return use_gpu_; }
  bool use_mkldnn() const { return use_mkldnn_; }

 protected:
  bool use_gpu_ = false;
  bool use_mkldnn_ = false;
};

class PD_INFER_DECL CpuPassStrategy : public PassStrategy {
 public:
  CpuPassStrategy();
  CpuPassStrategy(const CpuPassStrategy&);
  ~CpuPassStrategy() override;
};

class PD_INFER_DECL GpuPassStrategy : public PassStrategy {
 public:
  GpuPassStrategy();
  GpuPassStrategy(const GpuPassStrategy&);
  ~GpuPassStrategy() override;
};

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_PASS_BUILDER_H_
