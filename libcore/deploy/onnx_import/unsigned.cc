// SPDX-License-Identifier: Apache-2.0
// Unsigned integers of 16 to 64 bits, which PaddlePaddle's tensors lack. Those
// of 16 bits are held as int32, of 32 as int64, and results are cut to their
// width. Those of 64 are held as the int64 of the same bits: addition, products
// and equality do not tell them apart; comparisons flip the highest bit first,
// division and shifts to the right halve a number before its sign counts.
#include "libcore/deploy/onnx_import/unsigned.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

constexpr int64_t kSign = std::numeric_limits<int64_t>::min();
constexpr int64_t kAllButSign = std::numeric_limits<int64_t>::max();

std::string Number(OnnxNode* node, int64_t value) {
  return node->Constant(MakeArray<int64_t>({}, {value}));
}

DType Holder(int32_t bits) {
  return bits == 16 ? DType::kInt32 : DType::kInt64;
}

// The low bits of an int64 in the type that holds them.
std::string CutTo(OnnxNode* node, const std::string& x, int32_t bits) {
  const std::string wide = node->Cast(x, DType::kInt64);
  if (bits == 64) return wide;
  return node->Cast(
      node->Binary("bitwise_and", wide, Number(node, (int64_t{1} << bits) - 1)),
      Holder(bits));
}

void GiveUnsigned(OnnxNode* node, size_t i, const std::string& variable,
                  int32_t bits) {
  OnnxValue value;
  value.variable = variable;
  value.unsigned_bits = bits;
  node->GiveValue(i, std::move(value));
}

std::string WideIn(OnnxNode* node, size_t i) {
  return node->Cast(node->In(i), DType::kInt64);
}

// Numbers whose order as int64 is theirs as unsigned ones.
std::string Ordered(OnnxNode* node, const std::string& x, int32_t bits) {
  return bits == 64 ? node->Binary("bitwise_xor", x, Number(node, kSign)) : x;
}

// x / 2 of 64 bits without a sign.
std::string Halved(OnnxNode* node, const std::string& x) {
  const std::string half =
      node->Binary("elementwise_floordiv", x, Number(node, 2));
  return node->Binary("bitwise_and", half, Number(node, kAllButSign));
}

std::string Divided(OnnxNode* node, const std::string& x, const std::string& y,
                    int32_t bits) {
  if (bits != 64) return node->Binary("elementwise_floordiv", x, y);
  const std::string zero = Number(node, 0);
  const auto reaches = [&](const std::string& a, const std::string& b) {
    return node->Cast(node->Binary("greater_equal", Ordered(node, a, 64),
                                   Ordered(node, b, 64)),
                      DType::kInt64);
  };
  // Twice the quotient of x's half falls short by one at most.
  const std::string huge = node->Binary("less_than", y, zero);
  const std::string by = node->Where(huge, Number(node, 1), y);
  const std::string twice =
      node->Mul(node->Binary("elementwise_floordiv", Halved(node, x), by),
                Number(node, 2));
  const std::string rest = node->Sub(x, node->Mul(twice, by));
  const std::string small = node->Add(twice, reaches(rest, by));
  return node->Where(huge, reaches(x, y), small);
}

void ImportArithmetic(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  const std::string out =
      node->Binary(node->op_type(), WideIn(node, 0), WideIn(node, 1));
  GiveUnsigned(node, 0, CutTo(node, out, bits), bits);
}

void ImportDivision(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  const std::string out = Divided(node, WideIn(node, 0), WideIn(node, 1), bits);
  GiveUnsigned(node, 0, CutTo(node, out, bits), bits);
}

void ImportRemainder(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  const std::string x = WideIn(node, 0), y = WideIn(node, 1);
  const std::string out = node->Sub(x, node->Mul(Divided(node, x, y, bits), y));
  GiveUnsigned(node, 0, CutTo(node, out, bits), bits);
}

void ImportExtremum(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  std::string out;
  for (size_t i = 0; i < node->InputCount(); ++i) {
    const std::string x = Ordered(node, WideIn(node, i), bits);
    out = i == 0 ? x : node->Binary(node->op_type(), out, x);
  }
  GiveUnsigned(node, 0, CutTo(node, Ordered(node, out, bits), bits), bits);
}

void ImportComparison(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  node->Give(0,
             node->Binary(node->op_type(), Ordered(node, WideIn(node, 0), bits),
                          Ordered(node, WideIn(node, 1), bits)));
}

void ImportBitwiseNot(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  GiveUnsigned(
      node, 0,
      CutTo(node,
            node->Binary("bitwise_xor", WideIn(node, 0), Number(node, -1)),
            bits),
      bits);
}

// Shifts by as many bits as there are, or more, leave nothing.
void ImportShift(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  const std::string direction = node->Str("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node->Fail(InvalidArgument("direction '%s'", direction));
  const std::string x = WideIn(node, 0), by = WideIn(node, 1);
  const std::string zero = Number(node, 0), one = Number(node, 1);
  const std::string any = node->Binary("greater_than", by, zero);
  const std::string fits =
      node->Binary("logical_and", node->Binary("greater_equal", by, zero),
                   node->Binary("less_than", by, Number(node, bits)));
  // By one where any, then by the others: 2^63 is no int64.
  const std::string others = node->Where(node->Binary("logical_and", fits, any),
                                         node->Sub(by, one), zero);
  const std::string factor =
      node->ReshapeBy(node->Gather(node->ConstInts(PowersOfTwo()),
                                   node->Reshape(others, {-1}), 0),
                      node->ShapeVar(others));
  const bool left = direction == "LEFT";
  const std::string first =
      left ? node->Mul(x, Number(node, 2)) : Halved(node, x);
  const std::string shifted =
      left ? node->Mul(first, factor)
           : node->Binary("elementwise_floordiv", first, factor);
  const std::string out = node->Where(fits, node->Where(any, shifted, x), zero);
  GiveUnsigned(node, 0, CutTo(node, out, bits), bits);
}

// x as a number of a signed or floating type. Of 64 bits with the highest set:
// twice the half, whose last bit says that there was more, so it is rounded
// once.
std::string AsNumber(OnnxNode* node, const std::string& x, int32_t bits,
                     DType to) {
  if (bits != 64 || !IsFloating(to)) return node->Cast(x, to);
  const std::string one = Number(node, 1);
  const std::string half = node->Binary("bitwise_or", Halved(node, x),
                                        node->Binary("bitwise_and", x, one));
  const DType wide = to == DType::kFloat64 ? to : DType::kFloat32;
  const std::string huge = node->Affine(node->Cast(half, wide), 2, 0);
  return node->Cast(node->Where(node->Binary("less_than", x, Number(node, 0)),
                                huge, node->Cast(x, wide)),
                    to);
}

void CastFromOrTo(OnnxNode* node, int32_t to_bits, DType to) {
  const std::string x = node->In(0);
  const int32_t bits = node->UnsignedBits(0);
  if (to_bits == 0) {
    if (bits != 0 && to == DType::kBool)
      return node->Give(
          0, node->Binary("not_equal", WideIn(node, 0), Number(node, 0)));
    return node->Give(0, AsNumber(node, x, bits, to));
  }
  if (to_bits == 64 && IsFloating(node->TypeOf(x)))
    return node->Fail(Unimplemented(
        "%s as uint64: half of its numbers are too big for what holds them",
        Name(node->TypeOf(x))));
  GiveUnsigned(node, 0, CutTo(node, x, to_bits), to_bits);
}

void ImportUnsignedCast(OnnxNode* node) {
  const auto to = node->Int("to", 0);
  const int32_t bits = OnnxUnsignedBits(to);
  CastFromOrTo(node, bits, bits != 0 ? Holder(bits) : node->ElementType(to));
}

void ImportUnsignedCastLike(OnnxNode* node) {
  CastFromOrTo(node, node->UnsignedBits(1), node->TypeOf(node->In(1)));
}

// The bits of x as another type of as many.
void ImportUnsignedBits(OnnxNode* node) {
  const int32_t bits = node->UnsignedBits(0);
  const auto to = node->Int("to", 0);
  const int32_t to_bits = OnnxUnsignedBits(to);
  std::string x = node->In(0);
  if (bits != 0)
    x = node->Cast(x, bits == 16   ? DType::kInt16
                      : bits == 32 ? DType::kInt32
                                   : DType::kInt64);
  DType target = DType::kInt64;
  if (to_bits == 16) target = DType::kInt16;
  if (to_bits == 32) target = DType::kInt32;
  if (to_bits == 0) target = node->ElementType(to);
  if (node->ok() && SizeOf(node->TypeOf(x)) != SizeOf(target))
    node->Fail(InvalidArgument("%d bits as %s: the widths differ",
                               SizeOf(node->TypeOf(x)) * 8, Name(target)));
  if (!node->ok()) return;
  if (node->TypeOf(x) != target)
    x = node->Emit("view_dtype", {{"input", {x}}},
                   {{"dtype", static_cast<int32_t>(target)}}, "out");
  if (to_bits == 0) return node->Give(0, x);
  GiveUnsigned(node, 0, CutTo(node, x, to_bits), to_bits);
}

// A floating number to an unsigned power.
void ImportUnsignedPow(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  if (node->UnsignedBits(0) != 0 || !IsFloating(dtype))
    return node->Fail(Unimplemented("powers of integers without a sign"));
  const std::string y =
      AsNumber(node, node->In(1), node->UnsignedBits(1), dtype);
  node->Give(0, node->Binary("elementwise_pow", x, y));
}

// The outputs are elements of input `from`; `narrow`: not for 64 bits.
OnnxUnsignedRule Moves(size_t from, bool narrow = false, bool same = false) {
  return {nullptr, same, static_cast<int>(from), 1, narrow ? 32 : 64};
}
// The importer reads numbers: those of 64 bits may have a sign too much.
OnnxUnsignedRule Reads(int32_t most) { return {nullptr, false, -1, 0, most}; }
OnnxUnsignedRule Own(void (*import)(OnnxNode*), bool same = true) {
  return {import, same, -1, 0, 64};
}

const std::map<std::string, OnnxUnsignedRule>& Rules() {
  static const auto* rules = [] {
    auto* all = new std::map<std::string, OnnxUnsignedRule>{
        {"Add", Own(ImportArithmetic)},
        {"BitCast", Own(ImportUnsignedBits, false)},
        {"BitShift", Own(ImportShift)},
        {"BitwiseAnd", Own(ImportArithmetic)},
        {"BitwiseNot", Own(ImportBitwiseNot)},
        {"BitwiseOr", Own(ImportArithmetic)},
        {"BitwiseXor", Own(ImportArithmetic)},
        {"Cast", Own(ImportUnsignedCast, false)},
        {"CastLike", Own(ImportUnsignedCastLike, false)},
        {"Clip", Moves(0, true, true)},
        {"Concat", Moves(0, false, true)},
        {"DequantizeLinear", Reads(16)},
        {"Div", Own(ImportDivision)},
        {"Equal", Own(ImportComparison)},
        {"Max", Own(ImportExtremum)},
        {"Min", Own(ImportExtremum)},
        {"Mod", Own(ImportRemainder)},
        {"Mul", Own(ImportArithmetic)},
        {"Pow", Own(ImportUnsignedPow, false)},
        {"QuantizeLinear", {nullptr, false, 2, 1, 16}},
        {"Shape", Reads(64)},
        {"Size", Reads(64)},
        {"Sub", Own(ImportArithmetic)},
        {"TopK", Moves(0, true)},
        {"Where", Moves(1)},
    };
    for (const char* type :
         {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
      all->emplace(type, Own(ImportComparison));
    for (const char* type :
         {"Compress", "Constant", "Expand", "Flatten", "Gather",
          "GatherElements", "GatherND", "Identity", "Reshape", "Slice",
          "Squeeze", "Tile", "Transpose", "Unsqueeze"})
      all->emplace(type, Moves(0));
    OnnxUnsignedRule split = Moves(0);
    split.outputs = std::numeric_limits<size_t>::max();
    all->emplace("Split", split);
    return all;
  }();
  return *rules;
}

}  // namespace

const OnnxUnsignedRule* FindOnnxUnsignedRule(const OnnxFileNode& node) {
  if (!node.domain.empty()) return nullptr;
  const auto it = Rules().find(node.op_type);
  return it == Rules().end() ? nullptr : &it->second;
}

std::vector<int64_t> PowersOfTwo() {
  std::vector<int64_t> powers(63, 1);
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = 2 * powers[i - 1];
  return powers;
}

}  // namespace pd
