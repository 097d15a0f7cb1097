// SPDX-License-Identifier: Apache-2.0
// Reports of the fake driver to its observer, the fake CUPTI: its calls, and
// the work that they have started.
#ifndef PD_TESTS_DEVICE_FAKE_ACTIVITY_H_
#define PD_TESTS_DEVICE_FAKE_ACTIVITY_H_

#include <cstdint>

namespace pd {

struct FakeWork {
  enum class Kind {
    kNothing,
    kKernel,
    kHostToDevice,
    kDeviceToHost,
    kDeviceToDevice,
    kSet
  };
  Kind kind = Kind::kNothing;
  const char* name = nullptr;  // a kernel's
  uint64_t bytes = 0;
  unsigned blocks = 0, threads = 0;
  unsigned correlation = 0;  // of the call
};

struct FakeObserver {
  // Gives the call's correlation.
  unsigned (*call_begins)(const char* name, bool runtime);
  void (*call_ends)();
  void (*work_begins)();
  void (*work_ends)(const FakeWork& work);
};

using ObserveFn = void (*)(const FakeObserver*);  // fake_cuda_observe

}  // namespace pd

#endif  // PD_TESTS_DEVICE_FAKE_ACTIVITY_H_
