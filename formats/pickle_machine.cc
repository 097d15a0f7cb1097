// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/pickle_opcodes.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd::pickle {
namespace {

// A node takes about a hundred bytes and an opcode one: this bounds the sum.
constexpr size_t kMaxNodes = size_t{1} << 22;

struct GlobalName {
  absl::string_view module, name;
  Global global;
};

constexpr GlobalName kGlobals[] = {
    {"numpy.core.multiarray", "_reconstruct", Global::kReconstruct},
    {"numpy._core.multiarray", "_reconstruct", Global::kReconstruct},
    {"numpy.core.multiarray", "scalar", Global::kScalar},
    {"numpy._core.multiarray", "scalar", Global::kScalar},
    {"numpy.core.numeric", "_frombuffer", Global::kFromBuffer},
    {"numpy._core.numeric", "_frombuffer", Global::kFromBuffer},
    {"numpy", "ndarray", Global::kNdarray},
    {"numpy", "dtype", Global::kDtype},
    {"collections", "OrderedDict", Global::kOrderedDict},
    {"builtins", "eval", Global::kEval},
    {"__builtin__", "eval", Global::kEval},
    {"builtins", "tuple", Global::kTuple},
    {"__builtin__", "tuple", Global::kTuple},
    {"builtins", "complex", Global::kComplex},
    {"__builtin__", "complex", Global::kComplex},
    {"builtins", "bytes", Global::kBytes},
    {"__builtin__", "bytes", Global::kBytes},
    {"_codecs", "encode", Global::kEncode},
};

// Big-endian, the one place where pickle is.
double BigEndianDouble(absl::string_view bytes) {
  char reversed[8];
  std::reverse_copy(bytes.begin(), bytes.end(), reversed);
  double value;
  std::memcpy(&value, reversed, sizeof(value));
  return value;
}

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : (c < 0x10000 ? 2 : 3);
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  *out += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i)
    *out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
}

// Protocol 0's text: Latin-1 with \uXXXX and \UXXXXXXXX; to UTF-8.
absl::StatusOr<std::string> DecodeRawUnicode(absl::string_view line) {
  std::string out;
  while (!line.empty()) {
    const size_t digits = line[0] != '\\' || line.size() < 2
                              ? 0
                              : (line[1] == 'u' ? 4 : (line[1] == 'U' ? 8 : 0));
    uint32_t c = static_cast<unsigned char>(line[0]);
    line.remove_prefix(1);
    if (digits > 0) {
      if (line.size() <= digits ||
          !absl::SimpleHexAtoi(line.substr(1, digits), &c) || c > 0x10ffff)
        return DataLoss("an escape in a string is not a character");
      line.remove_prefix(digits + 1);
    }
    AppendUtf8(c, &out);
  }
  return out;
}

}  // namespace

void Node::SetOwned(std::string bytes) {
  auto held = std::make_shared<const std::string>(std::move(bytes));
  text = *held;
  owner = {held, reinterpret_cast<const std::byte*>(held->data())};
}

absl::StatusOr<const Node*> Machine::Run() {
  size_t end = 0;
  PD_ASSIGN_OR_RETURN(const Node* node, RunFirst(&end));
  if (in_.left() > 0)
    return DataLoss("byte %d: %d bytes follow STOP; expected the end", end,
                    in_.left());
  return node;
}

absl::StatusOr<const Node*> Machine::RunFirst(size_t* end) {
  for (;;) {
    const size_t at = in_.offset();
    if (in_.left() == 0) return DataLoss("byte %d: it ends without STOP", at);
    PD_ASSIGN_OR_RETURN(const auto opcode, in_.Number<uint8_t>("an opcode"));
    if (opcode == kStop) break;
    absl::Status status = Step(opcode);
    if (!status.ok()) return Annotate(status, absl::StrCat("byte ", at));
  }
  *end = in_.offset();
  if (stack_.size() != 1 || !marks_.empty())
    return DataLoss("%d values are left at STOP; expected one", stack_.size());
  return stack_[0];
}

absl::Status Machine::Step(uint8_t opcode) {
  switch (opcode) {
    case kProto: {
      PD_ASSIGN_OR_RETURN(const auto version,
                          in_.Number<uint8_t>("the protocol"));
      if (version > 5)
        return Unimplemented("the protocol is %d; expected 0 to 5", version);
      return absl::OkStatus();
    }
    case kFrame: {
      PD_ASSIGN_OR_RETURN(const auto size, in_.Number<uint64_t>("a frame"));
      if (size > in_.left())
        return DataLoss("a frame takes %d bytes; %d are left", size,
                        in_.left());
      return absl::OkStatus();
    }
    case kNone:
      return PushNew(Kind::kNone);
    case kNewTrue:
      return PushNew(Kind::kBool, 1);
    case kNewFalse:
      return PushNew(Kind::kBool, 0);
    case kMark:
      marks_.push_back(stack_.size());
      return absl::OkStatus();
    case kInt:
    case kLong:
    case kFloat:
      return TextNumber(opcode);
    case kGlobal: {
      PD_ASSIGN_OR_RETURN(const auto module, Line());
      PD_ASSIGN_OR_RETURN(const auto name, Line());
      return PushGlobal(module, name);
    }
    case kStackGlobal: {
      PD_ASSIGN_OR_RETURN(const Node* name, Pop());
      PD_ASSIGN_OR_RETURN(const Node* module, Pop());
      if (!module->IsText() || !name->IsText())
        return DataLoss("the name of a global is not a string");
      return PushGlobal(module->text, name->text);
    }
    case kReduce:
      return Reduce();
    case kBuild:
      return Build();
    case kNewObject:
      if (storages_ != nullptr && storages_->script()) return NewObject();
      break;
    case kBinPersId:
      if (storages_ != nullptr) return PersistentId();
      break;
    default:
      break;
  }
  if (IsMemoOpcode(opcode)) return Memo(opcode);
  if (IsNumberOpcode(opcode)) return Number(opcode);
  if (IsStringOpcode(opcode)) return String(opcode);
  if (IsFillOpcode(opcode)) return Fill(opcode);
  if (IsContainerOpcode(opcode)) return Container(opcode);
  return DataLoss("opcode 0x%02x is not one that state dicts are made of",
                  opcode);
}

absl::Status Machine::PushGlobal(absl::string_view module,
                                 absl::string_view name) {
  for (const GlobalName& known : kGlobals) {
    if (known.module != module || known.name != name) continue;
    PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kGlobal));
    node->global = known.global;
    return Push(node);
  }
  if (storages_ != nullptr) {
    PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kGlobal));
    if (FindTorchGlobal(module, name, node)) return Push(node);
    if (storages_->script() && FindScriptGlobal(module, name, node))
      return Push(node);
  }
  return PermissionDenied(
      "it names '%s.%s', which state dicts do not need: refused, nothing was "
      "executed",
      module.substr(0, 64), name.substr(0, 64));
}

// Numbers in decimal text, up to a newline: protocol 0.
absl::Status Machine::TextNumber(uint8_t opcode) {
  PD_ASSIGN_OR_RETURN(absl::string_view line, Line());
  if (opcode == kFloat) {
    PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kFloat));
    if (!absl::SimpleAtod(line, &node->real))
      return DataLoss("'%s' is not a number", line.substr(0, 32));
    return Push(node);
  }
  if (opcode == kInt && (line == "00" || line == "01"))
    return PushNew(Kind::kBool, line == "01");
  if (opcode == kLong && !line.empty() && line.back() == 'L')
    line.remove_suffix(1);
  int64_t value = 0;
  if (!absl::SimpleAtoi(line, &value))
    return DataLoss("'%s' is not an integer of 64 bits", line.substr(0, 32));
  return PushNew(Kind::kInt, value);
}

absl::Status Machine::Number(uint8_t opcode) {
  if (opcode == kBinInt) {
    PD_ASSIGN_OR_RETURN(const auto v, in_.Number<int32_t>("an integer"));
    return PushNew(Kind::kInt, v);
  }
  if (opcode == kBinInt1) {
    PD_ASSIGN_OR_RETURN(const auto v, in_.Number<uint8_t>("an integer"));
    return PushNew(Kind::kInt, v);
  }
  if (opcode == kBinInt2) {
    PD_ASSIGN_OR_RETURN(const auto v, in_.Number<uint16_t>("an integer"));
    return PushNew(Kind::kInt, v);
  }
  if (opcode == kBinFloat) {
    PD_ASSIGN_OR_RETURN(const auto bytes, in_.Take(8, "a float"));
    PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kFloat));
    node->real = BigEndianDouble(bytes);
    return Push(node);
  }
  uint64_t size = 0;
  if (opcode == kLong1) {
    PD_ASSIGN_OR_RETURN(size, in_.Number<uint8_t>("an integer's size"));
  } else {
    PD_ASSIGN_OR_RETURN(size, in_.Number<uint32_t>("an integer's size"));
  }
  PD_ASSIGN_OR_RETURN(auto bytes, in_.Take(size, "an integer"));
  // Two's complement: leading bytes may only repeat the sign.
  const bool negative = size > 0 && (bytes.back() & 0x80) != 0;
  while (bytes.size() > 1 && bytes.back() == (negative ? '\xff' : '\0') &&
         ((bytes[bytes.size() - 2] & 0x80) != 0) == negative)
    bytes.remove_suffix(1);
  if (bytes.size() > sizeof(int64_t)) return PushText(Kind::kBigInt, bytes);
  int64_t value = negative ? -1 : 0;
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
  return PushNew(Kind::kInt, value);
}

absl::Status Machine::String(uint8_t opcode) {
  uint64_t size = 0;
  switch (opcode) {
    case kString: {
      PD_ASSIGN_OR_RETURN(const absl::string_view line, Line());
      if (line.size() < 2 || line.front() != line.back() ||
          (line.front() != '\'' && line.front() != '"') ||
          line.find('\\') != absl::string_view::npos)
        return Unimplemented("a quoted string with escapes");
      return PushText(Kind::kRawString, line.substr(1, line.size() - 2));
    }
    case kUnicode: {
      PD_ASSIGN_OR_RETURN(const absl::string_view line, Line());
      PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kString));
      PD_ASSIGN_OR_RETURN(std::string text, DecodeRawUnicode(line));
      node->SetOwned(std::move(text));
      return Push(node);
    }
    case kShortBinString:
    case kShortBinUnicode:
    case kShortBinBytes: {
      PD_ASSIGN_OR_RETURN(size, in_.Number<uint8_t>("a length"));
      break;
    }
    case kBinUnicode8:
    case kBinBytes8:
    case kByteArray8: {
      PD_ASSIGN_OR_RETURN(size, in_.Number<uint64_t>("a length"));
      break;
    }
    default: {
      PD_ASSIGN_OR_RETURN(size, in_.Number<uint32_t>("a length"));
      break;
    }
  }
  PD_ASSIGN_OR_RETURN(const absl::string_view bytes,
                      in_.Take(size, "a string"));
  if (opcode == kShortBinString || opcode == kBinString)
    return PushText(Kind::kRawString, bytes);
  const bool text = opcode == kShortBinUnicode || opcode == kBinUnicode ||
                    opcode == kBinUnicode8;
  return PushText(text ? Kind::kString : Kind::kBytes, bytes);
}

// Opcodes that make a list, a tuple or a dict.
absl::Status Machine::Container(uint8_t opcode) {
  Kind kind = Kind::kTuple;
  if (opcode == kEmptyList || opcode == kList) kind = Kind::kList;
  if (opcode == kEmptyDict || opcode == kDict) kind = Kind::kDict;
  PD_ASSIGN_OR_RETURN(Node * node, New(kind));
  if (opcode == kList || opcode == kDict || opcode == kTuple) {
    PD_ASSIGN_OR_RETURN(node->items, PopToMark());
    if (opcode == kDict && node->items.size() % 2 != 0)
      return DataLoss("a dict has a key without a value");
  }
  if (opcode >= kTuple1 && opcode <= kTuple3) {
    for (int i = kTuple1; i <= opcode; ++i) {
      PD_ASSIGN_OR_RETURN(Node * item, Pop());
      node->items.insert(node->items.begin(), item);
    }
  }
  return Push(node);
}

// Opcodes that put values into the list or dict below them.
absl::Status Machine::Fill(uint8_t opcode) {
  std::vector<Node*> values;
  if (opcode == kAppends || opcode == kSetItems) {
    PD_ASSIGN_OR_RETURN(values, PopToMark());
  } else {
    PD_ASSIGN_OR_RETURN(Node * value, Pop());
    values.push_back(value);
    if (opcode == kSetItem) {
      PD_ASSIGN_OR_RETURN(Node * key, Pop());
      values.insert(values.begin(), key);
    }
  }
  const bool dict = opcode == kSetItem || opcode == kSetItems;
  PD_ASSIGN_OR_RETURN(Node * target, Top());
  if (target->kind != (dict ? Kind::kDict : Kind::kList))
    return DataLoss("values are put into what is not a %s",
                    dict ? "dict" : "list");
  if (dict && values.size() % 2 != 0)
    return DataLoss("a dict has a key without a value");
  target->items.insert(target->items.end(), values.begin(), values.end());
  return absl::OkStatus();
}

absl::Status Machine::Memo(uint8_t opcode) {
  uint64_t slot = 0;
  switch (opcode) {
    case kPut:
    case kGet: {
      PD_ASSIGN_OR_RETURN(const absl::string_view line, Line());
      if (!absl::SimpleAtoi(line, &slot))
        return DataLoss("'%s' is not a memo slot", line.substr(0, 32));
      break;
    }
    case kBinPut:
    case kBinGet: {
      PD_ASSIGN_OR_RETURN(slot, in_.Number<uint8_t>("a memo slot"));
      break;
    }
    case kLongBinPut:
    case kLongBinGet: {
      PD_ASSIGN_OR_RETURN(slot, in_.Number<uint32_t>("a memo slot"));
      break;
    }
    default:
      slot = memo_.size();
      break;
  }
  if (opcode == kGet || opcode == kBinGet || opcode == kLongBinGet) {
    const auto it = memo_.find(slot);
    if (it == memo_.end()) return DataLoss("memo slot %d was never set", slot);
    return Push(it->second);
  }
  PD_ASSIGN_OR_RETURN(memo_[slot], Top());
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> Machine::Line() {
  const absl::string_view rest = file_.view().substr(in_.offset());
  const size_t end = rest.find('\n');
  if (end == absl::string_view::npos) return DataLoss("a line does not end");
  PD_RETURN_IF_ERROR(in_.Take(end + 1, "a line").status());
  return rest.substr(0, end);
}

absl::Status Machine::Push(Node* node) {
  if (stack_.size() >= kMaxNodes)
    return ResourceExhausted("it has over %d values", kMaxNodes);
  stack_.push_back(node);
  return absl::OkStatus();
}

absl::StatusOr<Node*> Machine::New(Kind kind) {
  if (nodes_.size() >= kMaxNodes)
    return ResourceExhausted("it has over %d values", kMaxNodes);
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  return &nodes_.back();
}

absl::Status Machine::PushNew(Kind kind, int64_t integer) {
  PD_ASSIGN_OR_RETURN(Node * node, New(kind));
  node->integer = integer;
  return Push(node);
}

absl::Status Machine::PushText(Kind kind, absl::string_view text) {
  PD_ASSIGN_OR_RETURN(Node * node, New(kind));
  node->text = text;
  return Push(node);
}

absl::StatusOr<Node*> Machine::Pop() {
  PD_ASSIGN_OR_RETURN(Node * node, Top());
  stack_.pop_back();
  return node;
}

absl::StatusOr<Node*> Machine::Top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return DataLoss("a value is missing on the stack");
  return stack_.back();
}

absl::StatusOr<std::vector<Node*>> Machine::PopToMark() {
  if (marks_.empty()) return DataLoss("a mark is missing on the stack");
  const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<Node*> values(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return values;
}

}  // namespace pd::pickle
