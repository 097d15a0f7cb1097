// SPDX-License-Identifier: Apache-2.0
// pd-job-man DESCRIPTORS EXAMPLE: prints the man page pd-job(5).
#include <iostream>

#include "cmd/common/exit_status.h"
#include "cmd/job_man/job_page.h"
#include "libcore/base/file.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: pd-job-man DESCRIPTORS EXAMPLE\n";
    return pd::kExitUsage;
  }
  const auto descriptors = pd::ReadFile(argv[1]);
  const auto example = pd::ReadFile(argv[2]);
  for (const absl::Status& status : {descriptors.status(), example.status()}) {
    if (status.ok()) continue;
    std::cerr << "pd-job-man: error: " << status.message() << "\n";
    return pd::kExitFailed;
  }
  const auto page = pd::JobPage(descriptors->view(), example->view());
  if (!page.ok()) {
    std::cerr << "pd-job-man: error: " << page.status().message() << "\n";
    return pd::kExitFailed;
  }
  std::cout << *page << std::flush;
  return std::cout ? pd::kExitDone : pd::kExitFailed;
}
