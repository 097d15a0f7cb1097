// SPDX-License-Identifier: Apache-2.0
// Writing pickles as CPython's C pickler does for what PaddlePaddle hands it:
// the same opcodes, memo slots, batches of 1000 and frames of 64 KiB, so that
// state dicts come out with the bytes that paddle.save gives.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pickle.h"
#include "formats/pickle_opcodes.h"
#include "formats/raw_array.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Sink = std::function<absl::Status(absl::string_view)>;

constexpr size_t kFrameTarget = size_t{1} << 16;
constexpr size_t kFrameMin = 4;
constexpr size_t kBatch = 1000;

template <typename T>
std::string LittleEndian(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Bytes on their way out, in frames from protocol 4 on.
class FramedOutput {
 public:
  FramedOutput(Sink sink, bool framing)
      : sink_(std::move(sink)), framing_(framing) {}

  void Write(absl::string_view bytes) {
    frame_.append(bytes.data(), bytes.size());
  }

  /// Before each value: a frame that is long enough ends here.
  absl::Status Boundary() {
    return frame_.size() >= kFrameTarget ? Flush() : absl::OkStatus();
  }

  /// A header and its payload; a large one stands between two frames.
  absl::Status WriteLong(absl::string_view header, absl::string_view payload) {
    if (payload.size() < kFrameTarget) {
      Write(header);
      Write(payload);
      return absl::OkStatus();
    }
    PD_RETURN_IF_ERROR(Flush());
    PD_RETURN_IF_ERROR(sink_(header));
    return sink_(payload);
  }

  absl::Status Flush() {
    if (framing_ && frame_.size() >= kFrameMin) {
      const auto size = static_cast<uint64_t>(frame_.size());
      PD_RETURN_IF_ERROR(
          sink_(absl::StrCat(std::string(1, static_cast<char>(pickle::kFrame)),
                             LittleEndian(size))));
    }
    PD_RETURN_IF_ERROR(sink_(frame_));
    frame_.clear();
    return absl::OkStatus();
  }

 private:
  Sink sink_;
  bool framing_;
  std::string frame_;
};

// The key of "the same object" in the memo: equal short texts, the names
// that are called, the element types. Values of the tree are never the same.
struct MemoKey {
  char kind;
  std::string text;
  bool operator<(const MemoKey& o) const {
    return std::tie(kind, text) < std::tie(o.kind, o.text);
  }
};

class Pickler {
 public:
  Pickler(Sink sink, int protocol)
      : out_(std::move(sink), protocol >= 4), protocol_(protocol) {}

  absl::Status Dump(const PickleValue& value) {
    PD_RETURN_IF_ERROR(Save(value));
    Op(pickle::kStop);
    return out_.Flush();
  }

 private:
  void Op(uint8_t opcode) {
    out_.Write(std::string(1, static_cast<char>(opcode)));
  }
  template <typename T>
  void Op(uint8_t opcode, T argument) {
    Op(opcode);
    out_.Write(LittleEndian(argument));
  }

  // Memo: a value that no later value repeats still takes a slot.
  void Memoize() {
    const uint32_t slot = memo_size_++;
    if (protocol_ >= 4)
      Op(pickle::kMemoize);
    else if (slot < 256)
      Op(pickle::kBinPut, static_cast<uint8_t>(slot));
    else
      Op(pickle::kLongBinPut, slot);
  }
  void MemoizeAs(MemoKey key) {
    memo_[std::move(key)] = memo_size_;
    Memoize();
  }
  bool Recall(const MemoKey& key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) return false;
    if (it->second < 256)
      Op(pickle::kBinGet, static_cast<uint8_t>(it->second));
    else
      Op(pickle::kLongBinGet, it->second);
    return true;
  }

  absl::Status Save(const PickleValue& value) {
    PD_RETURN_IF_ERROR(out_.Boundary());
    return std::visit([this](const auto& v) { return SaveAs(v); }, value.value);
  }

  absl::Status SaveAs(const PickleNone&) {
    Op(pickle::kNone);
    return absl::OkStatus();
  }
  absl::Status SaveAs(bool value) {
    Op(value ? pickle::kNewTrue : pickle::kNewFalse);
    return absl::OkStatus();
  }
  absl::Status SaveAs(int64_t value) {
    if (value >= 0 && value <= 0xff)
      Op(pickle::kBinInt1, static_cast<uint8_t>(value));
    else if (value >= 0 && value <= 0xffff)
      Op(pickle::kBinInt2, static_cast<uint16_t>(value));
    else if (value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max())
      Op(pickle::kBinInt, static_cast<int32_t>(value));
    else
      return SaveAs(PickleBigInt{Shortest(value)});
    return absl::OkStatus();
  }
  // Two's complement without bytes that only repeat the sign.
  static std::string Shortest(int64_t value) {
    std::string bytes = LittleEndian(value);
    while (bytes.size() > 1) {
      const bool negative = (bytes[bytes.size() - 2] & 0x80) != 0;
      if (bytes.back() != (negative ? '\xff' : '\0')) break;
      bytes.pop_back();
    }
    return bytes;
  }
  absl::Status SaveAs(const PickleBigInt& value) {
    if (value.bytes.size() <= 0xff)
      Op(pickle::kLong1, static_cast<uint8_t>(value.bytes.size()));
    else
      Op(pickle::kLong4, static_cast<int32_t>(value.bytes.size()));
    out_.Write(value.bytes);
    return absl::OkStatus();
  }
  absl::Status SaveAs(double value) {
    std::string bytes = LittleEndian(value);
    Op(pickle::kBinFloat);
    out_.Write(std::string(bytes.rbegin(), bytes.rend()));
    return absl::OkStatus();
  }
  absl::Status SaveAs(const std::complex<double>& value) {
    PD_RETURN_IF_ERROR(
        SaveGlobal(protocol_ >= 3 ? "builtins" : "__builtin__", "complex"));
    PD_RETURN_IF_ERROR(SaveAs(value.real()));
    PD_RETURN_IF_ERROR(SaveAs(value.imag()));
    Op(pickle::kTuple2);
    Memoize();
    Op(pickle::kReduce);
    Memoize();
    return absl::OkStatus();
  }

  absl::Status SaveText(absl::string_view text) {
    PD_RETURN_IF_ERROR(out_.Boundary());
    MemoKey key{'s', std::string(text)};
    if (Recall(key)) return absl::OkStatus();
    PD_RETURN_IF_ERROR(WriteText(text));
    MemoizeAs(std::move(key));
    return absl::OkStatus();
  }
  absl::Status SaveAs(const std::string& text) { return SaveText(text); }

  absl::Status WriteText(absl::string_view text) {
    std::string head;
    if (protocol_ >= 4 && text.size() <= 0xff) {
      head = absl::StrCat(
          std::string(1, static_cast<char>(pickle::kShortBinUnicode)),
          LittleEndian(static_cast<uint8_t>(text.size())));
    } else if (text.size() <= std::numeric_limits<uint32_t>::max()) {
      head = absl::StrCat(std::string(1, pickle::kBinUnicode),
                          LittleEndian(static_cast<uint32_t>(text.size())));
    } else if (protocol_ >= 4) {
      head =
          absl::StrCat(std::string(1, static_cast<char>(pickle::kBinUnicode8)),
                       LittleEndian(static_cast<uint64_t>(text.size())));
    } else {
      return TooLong(text.size());
    }
    return out_.WriteLong(head, text);
  }

  absl::Status TooLong(size_t size) const {
    return OutOfRange(
        "a value takes %d bytes; protocol %d holds at most 4294967295", size,
        protocol_);
  }

  absl::Status SaveBytes(absl::string_view bytes) {
    // CPython has one object each for b'' and for bytes of length 1.
    const MemoKey key{'b', bytes.size() <= 1 ? std::string(bytes) : "many"};
    if (bytes.size() <= 1 && Recall(key)) return absl::OkStatus();
    if (protocol_ < 3)
      PD_RETURN_IF_ERROR(WriteBytesAsText(bytes));
    else
      PD_RETURN_IF_ERROR(WriteBytes(bytes));
    MemoizeAs(key);
    return absl::OkStatus();
  }
  absl::Status SaveAs(const PickleBytes& value) {
    return SaveBytes(value.bytes);
  }

  absl::Status WriteBytes(absl::string_view bytes) {
    std::string head;
    if (bytes.size() <= 0xff)
      head = absl::StrCat(std::string(1, pickle::kShortBinBytes),
                          LittleEndian(static_cast<uint8_t>(bytes.size())));
    else if (bytes.size() <= std::numeric_limits<uint32_t>::max())
      head = absl::StrCat(std::string(1, pickle::kBinBytes),
                          LittleEndian(static_cast<uint32_t>(bytes.size())));
    else if (protocol_ >= 4)
      head = absl::StrCat(std::string(1, static_cast<char>(pickle::kBinBytes8)),
                          LittleEndian(static_cast<uint64_t>(bytes.size())));
    else
      return TooLong(bytes.size());
    return out_.WriteLong(head, bytes);
  }

  // Protocol 2 has no bytes: encode(text, 'latin1'), or bytes() for none.
  absl::Status WriteBytesAsText(absl::string_view bytes) {
    if (bytes.empty()) {
      PD_RETURN_IF_ERROR(SaveGlobal("__builtin__", "bytes"));
      Op(pickle::kEmptyTuple);
      Op(pickle::kReduce);
      return absl::OkStatus();
    }
    PD_RETURN_IF_ERROR(SaveGlobal("_codecs", "encode"));
    std::string text;
    text.reserve(bytes.size() + bytes.size() / 2);
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
      text += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
    if (bytes.size() == 1) {
      PD_RETURN_IF_ERROR(SaveText(text));
    } else {
      PD_RETURN_IF_ERROR(out_.Boundary());
      PD_RETURN_IF_ERROR(WriteText(text));
      Memoize();
    }
    PD_RETURN_IF_ERROR(SaveText("latin1"));
    Op(pickle::kTuple2);
    Memoize();
    Op(pickle::kReduce);
    return absl::OkStatus();
  }

  absl::Status SaveGlobal(const std::string& module, const std::string& name) {
    PD_RETURN_IF_ERROR(out_.Boundary());
    MemoKey key{'g', absl::StrCat(module, " ", name)};
    if (Recall(key)) return absl::OkStatus();
    if (protocol_ >= 4) {
      PD_RETURN_IF_ERROR(SaveText(module));
      PD_RETURN_IF_ERROR(SaveText(name));
      Op(pickle::kStackGlobal);
    } else {
      Op(pickle::kGlobal);
      out_.Write(absl::StrCat(module, "\n", name, "\n"));
    }
    MemoizeAs(std::move(key));
    return absl::OkStatus();
  }

  // (kind, byte order) of numpy's dtype, one object for each.
  absl::Status SaveDtype(DType dtype) {
    PD_RETURN_IF_ERROR(out_.Boundary());
    const std::string name = NumpyDtype(dtype);
    MemoKey key{'d', name};
    if (Recall(key)) return absl::OkStatus();
    PD_RETURN_IF_ERROR(SaveGlobal("numpy", "dtype"));
    PD_RETURN_IF_ERROR(SaveText(name.substr(1)));
    Op(pickle::kNewFalse);
    Op(pickle::kNewTrue);
    Op(pickle::kTuple3);
    Memoize();
    Op(pickle::kReduce);
    MemoizeAs(std::move(key));
    Op(pickle::kMark);
    Op(pickle::kBinInt1, uint8_t{3});
    PD_RETURN_IF_ERROR(SaveText(name.substr(0, 1)));
    for (int i = 0; i < 3; ++i) Op(pickle::kNone);
    Op(pickle::kBinInt, int32_t{-1});
    Op(pickle::kBinInt, int32_t{-1});
    Op(pickle::kBinInt1, uint8_t{0});
    Op(pickle::kTuple);
    Memoize();
    Op(pickle::kBuild);
    return absl::OkStatus();
  }

  absl::Status SaveShape(const Shape& shape) {
    PD_RETURN_IF_ERROR(out_.Boundary());
    if (shape.empty()) {
      Op(pickle::kEmptyTuple);
      return absl::OkStatus();
    }
    if (shape.size() > 3) Op(pickle::kMark);
    for (const int64_t extent : shape) PD_RETURN_IF_ERROR(SaveAs(extent));
    CloseTuple(shape.size());
    return absl::OkStatus();
  }

  void CloseTuple(size_t size) {
    if (size > 3)
      Op(pickle::kTuple);
    else
      Op(static_cast<uint8_t>(pickle::kTuple1 + size - 1));
    Memoize();
  }

  absl::Status SaveAs(const Array& array) {
    PD_RETURN_IF_ERROR(SaveGlobal("numpy.core.multiarray", "_reconstruct"));
    PD_RETURN_IF_ERROR(SaveGlobal("numpy", "ndarray"));
    PD_RETURN_IF_ERROR(SaveShape({0}));
    PD_RETURN_IF_ERROR(SaveBytes("b"));
    Op(pickle::kTuple3);
    Memoize();
    Op(pickle::kReduce);
    Memoize();
    Op(pickle::kMark);
    Op(pickle::kBinInt1, uint8_t{1});
    PD_RETURN_IF_ERROR(SaveShape(array.shape));
    PD_RETURN_IF_ERROR(SaveDtype(array.dtype));
    Op(pickle::kNewFalse);
    PD_RETURN_IF_ERROR(out_.Boundary());
    PD_RETURN_IF_ERROR(SaveBytes({array.data<char>(), array.size_bytes()}));
    Op(pickle::kTuple);
    Memoize();
    Op(pickle::kBuild);
    return absl::OkStatus();
  }

  absl::Status SaveAs(const PickleList& list) {
    Op(pickle::kEmptyList);
    Memoize();
    const size_t size = list.items.size();
    if (size == 1) {
      PD_RETURN_IF_ERROR(Save(list.items[0]));
      Op(pickle::kAppend);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < size;) {
      Op(pickle::kMark);
      for (const size_t end = std::min(size, i + kBatch); i < end; ++i)
        PD_RETURN_IF_ERROR(Save(list.items[i]));
      Op(pickle::kAppends);
    }
    return absl::OkStatus();
  }

  // PaddlePaddle writes a Tensor as the call tuple((name, array)).
  static bool IsTensor(const PickleTuple& tuple) {
    return tuple.items.size() == 2 &&
           tuple.items[0].As<std::string>() != nullptr &&
           tuple.items[1].As<Array>() != nullptr;
  }

  absl::Status SaveAs(const PickleTuple& tuple) {
    const size_t size = tuple.items.size();
    if (size == 0) {
      Op(pickle::kEmptyTuple);
      return absl::OkStatus();
    }
    const bool tensor = IsTensor(tuple);
    if (tensor)
      PD_RETURN_IF_ERROR(
          SaveGlobal(protocol_ >= 3 ? "builtins" : "__builtin__", "tuple"));
    if (size > 3) Op(pickle::kMark);
    for (const PickleValue& item : tuple.items) PD_RETURN_IF_ERROR(Save(item));
    CloseTuple(size);
    if (!tensor) return absl::OkStatus();
    Op(pickle::kTuple1);
    Memoize();
    Op(pickle::kReduce);
    Memoize();
    return absl::OkStatus();
  }

  // A name that is its own key (a tensor called alike in both name spaces) is
  // two strings in PaddlePaddle's memory.
  absl::Status SaveUnder(const PickleValue& key, const PickleValue& value) {
    const auto* text = value.As<std::string>();
    const auto* name = key.As<std::string>();
    if (text == nullptr || name == nullptr || *text != *name ||
        text->size() <= 1)
      return Save(value);
    PD_RETURN_IF_ERROR(out_.Boundary());
    PD_RETURN_IF_ERROR(WriteText(*text));
    Memoize();
    return absl::OkStatus();
  }

  absl::Status SaveAs(const PickleDict& dict) {
    if (dict.ordered) {
      PD_RETURN_IF_ERROR(SaveGlobal("collections", "OrderedDict"));
      Op(pickle::kEmptyTuple);
      Op(pickle::kReduce);
    } else {
      Op(pickle::kEmptyDict);
    }
    Memoize();
    const size_t size = dict.items.size();
    for (size_t i = 0; i < size;) {
      const size_t end = std::min(size, i + kBatch);
      const bool batch = dict.ordered ? end - i > 1 : size > 1;
      if (batch) Op(pickle::kMark);
      for (; i < end; ++i) {
        PD_RETURN_IF_ERROR(Save(dict.items[i].first));
        PD_RETURN_IF_ERROR(
            SaveUnder(dict.items[i].first, dict.items[i].second));
      }
      Op(batch ? pickle::kSetItems : pickle::kSetItem);
    }
    return absl::OkStatus();
  }

  FramedOutput out_;
  int protocol_;
  std::map<MemoKey, uint32_t> memo_;
  uint32_t memo_size_ = 0;
};

absl::Status Write(const PickleValue& value, int protocol, const Sink& sink) {
  if (protocol < 2 || protocol > 4)
    return InvalidArgument("pickle protocol is %d; expected 2, 3 or 4",
                           protocol);
  const char start[] = {static_cast<char>(pickle::kProto),
                        static_cast<char>(protocol)};
  PD_RETURN_IF_ERROR(sink(absl::string_view(start, sizeof(start))));
  return Pickler(sink, protocol).Dump(value);
}

}  // namespace

absl::StatusOr<std::string> SerializePickle(const PickleValue& value,
                                            int protocol) {
  std::string bytes;
  PD_RETURN_IF_ERROR(Write(value, protocol, [&bytes](absl::string_view part) {
    bytes.append(part.data(), part.size());
    return absl::OkStatus();
  }));
  return bytes;
}

absl::Status WritePickle(const std::string& path, const PickleValue& value,
                         int protocol) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  PD_RETURN_IF_ERROR(Annotate(
      Write(value, protocol,
            [&file](absl::string_view part) { return file->Append(part); }),
      absl::StrCat("'", path, "'")));
  return file->Commit();
}

}  // namespace pd
