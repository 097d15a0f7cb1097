// SPDX-License-Identifier: Apache-2.0
// The options of pd-eval --serve.
#ifndef PD_CMD_EVAL_SERVE_OPTIONS_H_
#define PD_CMD_EVAL_SERVE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cmd/common/option_table.h"

namespace pd {

struct ServeFlags {
  std::string address;  ///< HOST:PORT; "": no server
  std::string grpc;     ///< HOST:PORT; "": not over gRPC
  int64_t max_batch = 8;
  double max_delay = 0;  ///< milliseconds
  int64_t workers = 1;
  int64_t max_queue = 256;
  double max_wait = 10;      ///< seconds
  int64_t max_request = 64;  ///< MiB
  int64_t connections = 256;
  int64_t versions = 0;
  double poll = 1;  ///< seconds
};

/// Adds the options, under the title "Serving".
void BindServeOptions(OptionTable* table, ServeFlags* flags);

/// The others need --serve, which goes with no other kind of work.
absl::Status ValidateServe(const OptionTable& table, const ServeFlags& flags);

}  // namespace pd

#endif  // PD_CMD_EVAL_SERVE_OPTIONS_H_
