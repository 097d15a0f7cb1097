// SPDX-License-Identifier: Apache-2.0
// The few parts of JSON that headers of tensor files are made of, read in one
// pass without building a document: what a header says is checked while it is
// read, and deep nesting cannot happen.
#ifndef PD_FORMATS_JSON_TEXT_H_
#define PD_FORMATS_JSON_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/status_macros.h"

namespace pd {

class JsonReader {
 public:
  /// `text` must outlive the reader.
  explicit JsonReader(absl::string_view text) : text_(text), rest_(text) {}

  /// A string with its escapes resolved, as UTF-8.
  absl::StatusOr<std::string> String();
  /// An integer of 0 or more.
  absl::StatusOr<int64_t> Count();
  /// Only blanks are left.
  absl::Status End();

  /// `[item, item, ...]`: calls `item()` in front of each.
  template <typename Item>
  absl::Status Array(const Item& item) {
    return List('[', ']', item);
  }
  /// `{"name": value, ...}`: calls `member(name)` in front of each value.
  template <typename Member>
  absl::Status Object(const Member& member) {
    return List('{', '}', [&]() -> absl::Status {
      PD_ASSIGN_OR_RETURN(std::string name, String());
      if (!Take(':')) return Bad("':'");
      return member(std::move(name));
    });
  }

 private:
  void SkipBlanks();
  bool Take(char c);
  absl::Status Bad(absl::string_view expected) const;
  absl::StatusOr<uint32_t> Hex4();
  absl::Status Escape(std::string* out);

  template <typename Item>
  absl::Status List(char open, char close, const Item& item) {
    if (!Take(open)) return Bad(absl::string_view(&open, 1));
    if (Take(close)) return absl::OkStatus();
    do {
      PD_RETURN_IF_ERROR(item());
    } while (Take(','));
    return Take(close) ? absl::OkStatus() : Bad("',' or the end of a list");
  }

  absl::string_view text_, rest_;
};

/// True when `text` is UTF-8 as RFC 3629 has it: no overlong forms, no
/// surrogates.
bool IsUtf8(absl::string_view text);

/// Appends `text`, which must be UTF-8, as a JSON string.
void AppendJsonString(absl::string_view text, std::string* out);

}  // namespace pd

#endif  // PD_FORMATS_JSON_TEXT_H_
