// SPDX-License-Identifier: Apache-2.0
// The sources of runtime/ and c_folder/ as text, which travel in the library.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_SOURCES_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_SOURCES_H_

#include <string>
#include <vector>

namespace pd {

struct RuntimeSource {
  std::string name;  ///< "conv.cc"
  std::string text;
};

const std::vector<RuntimeSource>& RuntimeSources();

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_SOURCES_H_
