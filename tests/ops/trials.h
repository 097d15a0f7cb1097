// SPDX-License-Identifier: Apache-2.0
// Many small trials of which any may kill its process: a child runs them, and
// when it dies, the trial that killed it is known and another child goes on
// behind it.
#ifndef PD_TESTS_OPS_TRIALS_H_
#define PD_TESTS_OPS_TRIALS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

/// Builds with sanitizers take ten times the time, and memory of their
/// own.
#ifdef PD_WITH_SANITIZER
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

class Trials {
 public:
  /// Makes the trials one after the other, always the same ones; runs in each
  /// child.
  using Enumerate = std::function<void(Trials*)>;
  /// Answers what is wrong, or "".
  using Trial = std::function<std::string()>;

  /// Runs every trial that `enumerate` makes in child processes. Gives what
  /// went wrong, each with its trial's name: what a trial answered, the signal
  /// that ended it, more than `seconds` of time, or more than `bytes` of memory
  /// taken (0: any; sanitizers' builds do not look).
  static std::vector<std::string> Run(const Enumerate& enumerate,
                                      unsigned seconds, size_t bytes);

  /// One trial.
  void Add(absl::string_view name, const Trial& trial);

  /// The trials that follow may have no end, as a program whose loop is told
  /// to go on: they get one second, and to need more is no mistake.
  void MayBeEndless(bool may);

  /// Trials so far.
  int count() const { return count_; }

 private:
  struct Shared;
  void Say(absl::string_view text) const;

  Shared* shared_ = nullptr;
  int skip_ = 0;  // trials of the children before this one
  int count_ = 0;
  int pipe_ = -1;
  unsigned seconds_ = 0;
  size_t bytes_ = 0;
};

}  // namespace pd

#endif  // PD_TESTS_OPS_TRIALS_H_
