// SPDX-License-Identifier: Apache-2.0
// JSON text of values that hold names and paths. Paths may be any bytes, JSON
// is UTF-8, and nlohmann::json throws where they differ: an error after the
// work is done.
#ifndef PD_LIBCORE_BASE_DUMP_JSON_H_
#define PD_LIBCORE_BASE_DUMP_JSON_H_

#include <string>

namespace pd {

/// The text of an nlohmann::json or ordered_json, in one line or, with an
/// `indent`, in several. Bytes that are no UTF-8 become U+FFFD.
template <typename Json>
std::string DumpJson(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_DUMP_JSON_H_
