// SPDX-License-Identifier: Apache-2.0
// pd-api-table FOLDER: PaddlePaddle's names beside what a job can say, from
// paddle_api.txt, functions.txt and aliases.txt in FOLDER. Used by
// scripts/make_api_table and its test, not installed.
#include <iostream>
#include <string>

#include "cmd/common/exit_status.h"
#include "cmd/job_man/api_table.h"
#include "libcore/base/file.h"
#include "libcore/ops/registry.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pd-api-table FOLDER\n";
    return pd::kExitUsage;
  }
  const std::string folder = argv[1];
  const auto names = pd::ReadFile(folder + "/paddle_api.txt");
  const auto functions = pd::ReadFile(folder + "/functions.txt");
  const auto aliases = pd::ReadFile(folder + "/aliases.txt");
  pd::OpRegistry operators;
  for (const absl::Status& status :
       {names.status(), functions.status(), aliases.status(),
        pd::RegisterAllOps(&operators)}) {
    if (status.ok()) continue;
    std::cerr << "pd-api-table: error: " << status.message() << "\n";
    return pd::kExitFailed;
  }
  const auto table = pd::MakeApiTable(
      {names->view(), functions->view(), aliases->view()}, operators);
  if (!table.ok()) {
    std::cerr << "pd-api-table: error: " << table.status().message() << "\n";
    return pd::kExitFailed;
  }
  std::cout << table->counts << table->names << std::flush;
  return std::cout ? pd::kExitDone : pd::kExitFailed;
}
