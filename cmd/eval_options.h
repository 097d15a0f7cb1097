// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_OPTIONS_H_
#define PD_CMD_EVAL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/amp_options.h"
#include "cmd/common/pass_options.h"
#include "cmd/common/tool.h"
#include "cmd/eval_serve_options.h"

namespace pd {

struct EvalOptions {
  CommonOptions common;
  std::vector<std::string> models;  ///< as given; several are for `serve`
  std::string model, params_file;   ///< of the only one
  std::string config;
  std::vector<std::string> overrides;
  std::string feed;     ///< npz
  std::string lod;      ///< JSON: sequence lengths of the feed
  std::string startup;  ///< a startup program
  std::string fetch;    ///< names, separated by commas
  std::string out;      ///< npz; of --predict also csv, jsonl, "-"
  bool predict = false;
  std::vector<std::string> sources;  ///< of --predict
  std::string from;                  ///< their form; "": by their names
  int64_t top = 1;                   ///< classes of each record
  std::string masks;                 ///< a folder of pictures
  std::string expect;                ///< npz
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  bool check_nan_inf = false;
  std::string report;                     ///< an HTML file
  std::vector<std::string> grads;         ///< "out=cotangent,..." each
  std::vector<std::string> wrt;           ///< names, separated by commas, each
  std::string jvp, jacobian;              ///< names, separated by commas
  std::string hessian;                    ///< a name
  bool batched = false;                   ///< of jacobian and hessian
  std::vector<std::string> requirements;  ///< "acc>=0.99"
  std::optional<double> bench;
  int64_t batch = 1;
  std::vector<std::string> shapes;  ///< "x=1,3,224,224"
  AmpFlags amp;
  PassFlags passes;
  ServeFlags serve;
  ProcessOptions processes;
};

Tool EvalTool(EvalOptions* options);

}  // namespace pd

#endif  // PD_CMD_EVAL_OPTIONS_H_
