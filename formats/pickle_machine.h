// SPDX-License-Identifier: Apache-2.0
// Inside of ParsePickle: the stack machine of a pickle, which builds a graph of
// nodes. Nodes live in one arena, so that deep or looping graphs can be thrown
// away without recursion; pickle.cc makes a tree of values from a good one.
#ifndef PD_FORMATS_PICKLE_MACHINE_H_
#define PD_FORMATS_PICKLE_MACHINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd::pickle {

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kComplex,
  kString,
  kRawString,  ///< Python 2's str: text or bytes
  kBytes,
  kList,
  kTuple,
  kDict,
  kArray,
  kGlobal,  ///< a name that may be called
  kDtype,
};

/// Every name that a pickle may mention.
enum class Global : uint8_t {
  kReconstruct,
  kScalar,
  kFromBuffer,
  kNdarray,
  kDtype,
  kOrderedDict,
  kEval,
  kTuple,
  kComplex,
  kBytes,
  kEncode,
};

struct Node {
  Kind kind = Kind::kNone;
  bool ordered = false;  ///< kDict: an OrderedDict
  Global global = Global::kNdarray;
  int64_t integer = 0;  ///< kInt, kBool
  double real = 0, imag = 0;
  absl::string_view text;  ///< strings, bytes, kBigInt; in the file or `owner`
  std::shared_ptr<const std::byte> owner;
  std::vector<Node*> items;      ///< kDict: keys and values in turn
  std::unique_ptr<Array> array;  ///< null until its state came
  RawLayout layout;              ///< kDtype

  /// Sets `text` to bytes that the node itself holds.
  void SetOwned(std::string bytes);
  bool IsText() const {
    return kind == Kind::kString || kind == Kind::kRawString;
  }
  bool IsBytes() const {
    return kind == Kind::kBytes || kind == Kind::kRawString;
  }
};

/// Runs a pickle once.
class Machine {
 public:
  Machine(const FileBytes& file, Alignment alignment)
      : file_(file), in_(file), alignment_(alignment) {}

  /// The value at STOP; it lives as long as the machine.
  absl::StatusOr<const Node*> Run();

 private:
  absl::Status Step(uint8_t opcode);
  absl::Status Number(uint8_t opcode);
  absl::Status TextNumber(uint8_t opcode);
  absl::Status String(uint8_t opcode);
  absl::Status Container(uint8_t opcode);
  absl::Status Fill(uint8_t opcode);
  absl::Status Memo(uint8_t opcode);
  absl::Status PushGlobal(absl::string_view module, absl::string_view name);

  // pickle_calls.cc: what REDUCE and BUILD mean for the names above.
  absl::Status Reduce();
  absl::Status Build();
  absl::Status CallReconstruct(const Node& args);
  absl::Status CallScalar(const Node& args);
  absl::Status CallFromBuffer(const Node& args);
  absl::Status CallDtype(const Node& args);
  absl::Status CallOrderedDict(const Node& args);
  absl::Status CallEval(const Node& args);
  absl::Status CallComplex(const Node& args);
  absl::Status CallEncode(const Node& args);
  absl::Status BuildDtype(const Node& state, Node* dtype);
  absl::Status BuildArray(const Node& state, Node* array);
  absl::Status SetArray(const Node& data, RawLayout layout, const Node& shape,
                        bool fortran_order, Node* array);
  /// Counts bytes that a pickle makes us copy against what its size permits.
  absl::Status Charge(uint64_t bytes);

  absl::StatusOr<absl::string_view> Line();
  absl::Status Push(Node* node);
  absl::StatusOr<Node*> New(Kind kind);
  absl::Status PushNew(Kind kind, int64_t integer = 0);
  absl::Status PushText(Kind kind, absl::string_view text);
  absl::StatusOr<Node*> Pop();
  absl::StatusOr<Node*> Top();
  absl::StatusOr<std::vector<Node*>> PopToMark();

  FileBytes file_;
  ByteReader in_;
  Alignment alignment_;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Node*> memo_;
  uint64_t copied_ = 0;
};

}  // namespace pd::pickle

#endif  // PD_FORMATS_PICKLE_MACHINE_H_
