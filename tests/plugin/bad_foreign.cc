// SPDX-License-Identifier: Apache-2.0
// Built with other headers, which leave the builder to a library that is not
// here.
#include <string>

namespace paddle {
class OpMetaInfoBuilder {
 public:
  explicit OpMetaInfoBuilder(std::string&& name, size_t index);
};
}  // namespace paddle
static paddle::OpMetaInfoBuilder builder("custom_same", 0);
