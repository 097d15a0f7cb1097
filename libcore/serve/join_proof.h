// SPDX-License-Identifier: Apache-2.0
// Whether a model answers requests that are joined along the first axis as it
// answers them one by one. What a program declares does not tell: a mean over
// the batch keeps the shape. So before requests of a kind are joined for the
// first time, one of them is run alone, a second one made of its numbers in
// another order is run alone, and both are run joined.
#ifndef PD_LIBCORE_SERVE_JOIN_PROOF_H_
#define PD_LIBCORE_SERVE_JOIN_PROOF_H_

#include <map>
#include <mutex>
#include <string>

#include "libcore/serve/runner.h"

namespace pd {
namespace serve {

class JoinProof {
 public:
  /// Whether requests like this one may be joined; `key` is its JoinKey. Asks
  /// `runner` where that is not known yet. Any thread may call it.
  bool MayJoin(const std::string& key, const NamedArrays& request,
               Runner* runner);
  /// False also where it is not known yet.
  bool Refuted(const std::string& key) const;

 private:
  enum class Finding { kYes, kNo, kUnknown };
  struct Found {
    Finding finding = Finding::kUnknown;
    int failed = 0;
  };
  static Finding Try(const NamedArrays& request, Runner* runner,
                     std::string* why);

  mutable std::mutex mutex_;
  std::map<std::string, Found> findings_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_JOIN_PROOF_H_
