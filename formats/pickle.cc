// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/json_text.h"
#include "formats/pickle_machine.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using pickle::Kind;
using pickle::Node;

constexpr int kMaxDepth = 64;
// A pickle may name a value many times; the tree holds each again. This bounds
// how much larger than the file it may grow.
constexpr uint64_t kFreeSize = uint64_t{1} << 20;
constexpr uint64_t kSizePerByte = 16;

// Makes the tree of values out of the machine's graph.
class TreeBuilder {
 public:
  explicit TreeBuilder(uint64_t file_size)
      : budget_(kFreeSize + kSizePerByte * file_size) {}

  absl::StatusOr<PickleValue> Build(const Node& node, int depth) {
    if (depth > kMaxDepth)
      return InvalidArgument("its values lie over %d levels deep", kMaxDepth);
    const uint64_t cost = 1 + node.text.size();
    if (cost > budget_)
      return ResourceExhausted("its values are far larger than the file");
    budget_ -= cost;
    PickleValue out;
    switch (node.kind) {
      case Kind::kNone:
        break;
      case Kind::kBool:
        out.value = node.integer != 0;
        break;
      case Kind::kInt:
        out.value = node.integer;
        break;
      case Kind::kBigInt:
        out.value = PickleBigInt{std::string(node.text)};
        break;
      case Kind::kFloat:
        out.value = node.real;
        break;
      case Kind::kComplex:
        out.value = std::complex<double>(node.real, node.imag);
        break;
      case Kind::kString:
      case Kind::kRawString:
        out.value = std::string(node.text);
        break;
      case Kind::kBytes:
        out.value = PickleBytes{std::string(node.text)};
        break;
      case Kind::kList:
        return Items<PickleList>(node, depth);
      case Kind::kTuple:
        return Items<PickleTuple>(node, depth);
      case Kind::kDict:
        return Dict(node, depth);
      case Kind::kArray:
        if (node.array == nullptr)
          return DataLoss("an array never got its elements");
        out.value = *node.array;
        break;
      case Kind::kGlobal:
      case Kind::kDtype:
      case Kind::kStorage:
        return InvalidArgument(
            "it holds a name, an element type or a storage; expected values");
    }
    return out;
  }

 private:
  template <typename Sequence>
  absl::StatusOr<PickleValue> Items(const Node& node, int depth) {
    Sequence sequence;
    for (size_t i = 0; i < node.items.size(); ++i) {
      auto item = Build(*node.items[i], depth + 1);
      if (!item.ok()) return item.status();
      sequence.items.push_back(*std::move(item));
    }
    return PickleValue{std::move(sequence)};
  }

  absl::StatusOr<PickleValue> Dict(const Node& node, int depth) {
    PickleDict dict;
    dict.ordered = node.ordered;
    std::unordered_map<std::string, size_t> seen;
    for (size_t i = 0; i < node.items.size(); i += 2) {
      const Node& key = *node.items[i];
      if (key.kind > Kind::kBytes && key.kind != Kind::kTuple)
        return InvalidArgument(
            "a dict's key is not a number, a string or a tuple of them");
      if (!IsUtf8Key(key))
        return InvalidArgument(
            "a dict's key '%s' is no UTF-8; expected names in UTF-8",
            absl::CHexEscape(key.text.substr(0, 64)));
      PD_ASSIGN_OR_RETURN(PickleValue name, Build(key, depth + 1));
      auto value = Build(*node.items[i + 1], depth + 1);
      if (!value.ok())
        return key.IsText()
                   ? Annotate(value.status(),
                              absl::StrCat("'", key.text.substr(0, 64), "'"))
                   : value.status();
      const auto [known, added] =
          seen.emplace(KeyBytes(key), dict.items.size());
      if (added)
        dict.items.emplace_back(std::move(name), *std::move(value));
      else
        dict.items[known->second].second = *std::move(value);
    }
    return PickleValue{std::move(dict)};
  }

  // Names of bytes that are no text would be printed and written as they are.
  static bool IsUtf8Key(const Node& key) {
    return (!key.IsText() || IsUtf8(key.text)) &&
           std::all_of(key.items.begin(), key.items.end(),
                       [](const Node* item) { return IsUtf8Key(*item); });
  }

  // Equal for equal keys only.
  static std::string KeyBytes(const Node& key) {
    std::string bytes =
        absl::StrCat(key.IsText() ? static_cast<int>(Kind::kString)
                                  : static_cast<int>(key.kind),
                     "/", key.integer, "/", key.real, "/", key.imag, "/",
                     key.text.size(), "/", key.text);
    for (const Node* item : key.items) absl::StrAppend(&bytes, KeyBytes(*item));
    return bytes;
  }

  uint64_t budget_;
};

}  // namespace

const PickleValue* PickleDict::Find(absl::string_view key) const {
  for (const auto& [name, value] : items) {
    const auto* text = name.As<std::string>();
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

void PickleDict::Add(std::string key, PickleValue value) {
  items.emplace_back(PickleValue{std::move(key)}, std::move(value));
}

absl::string_view TypeName(const PickleValue& value) {
  static constexpr absl::string_view kNames[] = {
      "None", "bool",  "int",  "int",   "float", "complex",
      "str",  "bytes", "list", "tuple", "dict",  "array"};
  return kNames[value.value.index()];
}

absl::StatusOr<PickleValue> ParsePickle(const FileBytes& file,
                                        Alignment alignment) {
  pickle::Machine machine(file, alignment);
  PD_ASSIGN_OR_RETURN(const Node* node, machine.Run());
  return pickle::TreeOf(*node, file.size);
}

absl::StatusOr<PickleValue> pickle::TreeOf(const Node& node,
                                           uint64_t file_size) {
  return TreeBuilder(file_size).Build(node, 0);
}

absl::StatusOr<PickleValue> ReadPickle(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto value = ParsePickle(file);
  if (!value.ok())
    return Annotate(value.status(), absl::StrCat("'", path, "'"));
  return value;
}

bool IsPickle(absl::string_view bytes) {
  if (bytes.size() < 3) return false;
  if (bytes[0] == '\x80') return bytes[1] >= 2 && bytes[1] <= 5;
  return bytes.back() == '.' &&
         (absl::StartsWith(bytes, "(dp") || absl::StartsWith(bytes, "}q") ||
          absl::StartsWith(bytes, "(lp"));
}

}  // namespace pd
