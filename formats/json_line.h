// SPDX-License-Identifier: Apache-2.0
// One JSON value of a JSON-lines file, parsed into a flat list of nodes that is
// used again for the next line: nothing is allocated once it has grown. Strict
// JSON (RFC 8259), nested at most 64 deep.
#ifndef PD_FORMATS_JSON_LINE_H_
#define PD_FORMATS_JSON_LINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct JsonNode {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kNumber,
    kString,
    kArray,
    kObject,
  };
  Kind kind = Kind::kNull;
  bool escaped = false;    ///< a string with escapes
  double number = 0;       ///< of a number; 1 for true
  absl::string_view text;  ///< of a string, between its quotes
  size_t items = 0;        ///< of an array; of an object, its members
  size_t end = 0;          ///< the node behind this one and all inside it
  size_t at = 0;           ///< where it begins in the line
};

/// "a number", "an array": for messages.
const char* KindName(JsonNode::Kind kind);

class JsonLine {
 public:
  static constexpr int kDeepest = 64;

  /// Parses a line, which outlives the nodes. DataLoss "column 7: expected
  /// ...".
  absl::Status Parse(absl::string_view line);

  /// Node 0 is the value. Inside an array its items follow one after the other
  /// (next: `end`); inside an object a string node, the name, precedes each
  /// member's value.
  const std::vector<JsonNode>& nodes() const { return nodes_; }

  /// The node of an object's member (the last of that name); 0 when there is
  /// none or `object` is no object.
  size_t Member(size_t object, absl::string_view name) const;
  /// The node of an array's item; 0 when there is none.
  size_t Item(size_t array, size_t index) const;

  /// A string node's text, with its escapes resolved into `buffer`.
  absl::StatusOr<absl::string_view> Text(size_t node,
                                         std::string* buffer) const;

 private:
  absl::Status Value(int depth);
  absl::Status List(JsonNode::Kind kind, char close, int depth);
  absl::Status String();
  absl::Status Number();
  absl::Status Word(absl::string_view word, JsonNode::Kind kind, double number);
  size_t Open(JsonNode::Kind kind);
  void SkipBlanks();
  absl::Status Bad(absl::string_view expected) const;

  absl::string_view line_;
  size_t at_ = 0;
  std::vector<JsonNode> nodes_;
};

}  // namespace pd

#endif  // PD_FORMATS_JSON_LINE_H_
