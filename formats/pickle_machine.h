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
#include "formats/pickle.h"
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
  kStorage,  ///< of torch.save: `text` is its key, `integer` its elements
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
  // Of torch.save (pickle_torch.cc).
  kTorchStorage,
  kTorchTensor,
  kTorchTensorV2,
  kTorchParameter,
  kTorchSize,
  // Of torch.jit.save.
  kTorchClass,
  kTorchList,
  kTorchTag,
};

/// Where torch.save keeps the elements of the tensors that its pickle names.
class StorageSource {
 public:
  virtual ~StorageSource() = default;
  /// The bytes of the storage `key`: `count` elements of `layout`. Without data
  /// where the pickle is only looked through and no array is wanted.
  virtual absl::StatusOr<FileBytes> Storage(absl::string_view key,
                                            const RawLayout& layout,
                                            int64_t count) = 0;
  /// Whether elements lie in big-endian order.
  virtual bool big_endian() const { return false; }
  /// Whether it is a pickle of torch.jit.save, which has objects of classes
  /// too.
  virtual bool script() const { return false; }
  /// Bytes of the file that pickle and storages are of.
  virtual uint64_t file_size() const = 0;
};

struct Node {
  Kind kind = Kind::kNone;
  bool ordered = false;  ///< kDict: an OrderedDict
  /// kDict: an object's attributes; `text` is its class.
  bool object = false;
  Global global = Global::kNdarray;
  int64_t integer = 0;  ///< kInt, kBool
  double real = 0, imag = 0;
  absl::string_view text;  ///< strings, bytes, kBigInt; in the file or `owner`
  std::shared_ptr<const std::byte> owner;
  std::vector<Node*> items;      ///< kDict: keys and values in turn
  std::unique_ptr<Array> array;  ///< null until its state came
  RawLayout layout;              ///< kDtype, kStorage, kTorchStorage

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
  /// With `storages`, which outlive it, the names of torch.save are known too.
  Machine(const FileBytes& file, Alignment alignment,
          StorageSource* storages = nullptr)
      : file_(file), in_(file), alignment_(alignment), storages_(storages) {}

  /// The value at STOP; it lives as long as the machine.
  absl::StatusOr<const Node*> Run();
  /// Run, but more may follow: STOP is the byte before `*end`.
  absl::StatusOr<const Node*> RunFirst(size_t* end);

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
  // pickle_torch.cc.
  absl::Status PersistentId();
  absl::Status CallTorch(Global callable, const Node& args);
  absl::Status NewObject();
  absl::Status SetTensor(const Node& storage, const Node& offset,
                         const Node& shape, const Node& strides, Node* array);
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
  StorageSource* storages_;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Node*> memo_;
  uint64_t copied_ = 0;
};

/// The same for torch.jit.save, which names classes and typed lists besides.
bool FindScriptGlobal(absl::string_view module, absl::string_view name,
                      Node* node);

/// Whether `module`.`name` is one that torch.save writes; then `node` is it.
bool FindTorchGlobal(absl::string_view module, absl::string_view name,
                     Node* node);

/// The tree of values of a good graph; `file_size` bounds how large it grows.
absl::StatusOr<PickleValue> TreeOf(const Node& node, uint64_t file_size);

}  // namespace pd::pickle

#endif  // PD_FORMATS_PICKLE_MACHINE_H_
