// SPDX-License-Identifier: Apache-2.0
// A libcudnn.so.9 for machines without a GPU: descriptors that are checked when
// they are finalized, operations that are computed one after the other, run by
// the fake driver beside it when it gets to them, and five engines. It
// recommends one that has to be compiled, one that rounds, one that is not
// deterministic and one that has no plan; and one that is plain and modest to
// whoever asks for its fallback. They are for three patterns, as the real
// library's kernels are: a part of a convolution; a forward one without groups,
// with sums and a ReLU behind it; and attention of halves.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "libcore/device/cudnn_graph.h"
#include "tests/device/fake_convolution.h"
#include "tests/device/fake_graph.h"
#include "tests/device/fake_queue.h"

namespace {

using namespace pd::cudnn_graph;  // NOLINT: its numbers
using fake::Named;
using fake::Operation;
using fake::Program;
using fake::Tensor;

constexpr int kSuccess = 0, kBadParam = 2000, kNotSupported = 3000;
constexpr int64_t kGreedyBytes = int64_t{3} << 20,
                  kCompiledBytes = int64_t{1} << 20, kModestBytes = 2048;
constexpr int64_t kRounding = 0, kNondeterministic = 1, kWithoutPlan = 2,
                  kCompiled = 3, kPlain = 4;

int plans = 0;

struct Descriptor {
  int kind = 0;
  bool done = false;
  std::map<int, std::vector<uint8_t>> values;
  // The contents after it is finished.
  Operation operation;
  std::shared_ptr<const Program> program;
  int64_t engine = -1;

  bool Has(int attribute) const { return values.count(attribute) > 0; }
  template <typename T>
  std::vector<T> List(int attribute) const {
    const auto at = values.find(attribute);
    if (at == values.end()) return {};
    std::vector<T> list(at->second.size() / sizeof(T));
    std::memcpy(list.data(), at->second.data(), list.size() * sizeof(T));
    return list;
  }
  template <typename T>
  T One(int attribute, T otherwise = T()) const {
    const auto list = List<T>(attribute);
    return list.size() == 1 ? list[0] : otherwise;
  }
  const Descriptor* Node(int attribute) const {
    const auto* node = One<Descriptor*>(attribute);
    return node != nullptr && node->done ? node : nullptr;
  }
};

struct Known {
  int kind, attribute, type;
  size_t bytes;
};
constexpr Known kKnown[] = {
    {kPointwise, kPointwiseMode, kTypePointwiseMode, 4},
    {kPointwise, kPointwiseMathType, kTypeDataType, 4},
    {kPointwise, kPointwiseReluUpper, kTypeDouble, 8},
    {kConvolution, kConvolutionType, kTypeDataType, 4},
    {kConvolution, kConvolutionMode, kTypeConvolutionMode, 4},
    {kConvolution, kConvolutionDilations, kTypeInt64, 8},
    {kConvolution, kConvolutionStrides, kTypeInt64, 8},
    {kConvolution, kConvolutionPostPaddings, kTypeInt64, 8},
    {kConvolution, kConvolutionPrePaddings, kTypeInt64, 8},
    {kConvolution, kConvolutionDims, kTypeInt64, 8},
    {kHeuristics, kHeuristicsMode, kTypeHeuristicsMode, 4},
    {kHeuristics, kHeuristicsGraph, kTypeDescriptor, 8},
    {kPlan, kPlanHandle, kTypeHandle, 8},
    {kPlan, kPlanConfig, kTypeDescriptor, 8},
    {kConvolutionForward, kForwardAlpha, kTypeFloat, 4},
    {kConvolutionForward, kForwardBeta, kTypeFloat, 4},
    {kConvolutionForward, kForwardConvolution, kTypeDescriptor, 8},
    {kConvolutionForward, kForwardW, kTypeDescriptor, 8},
    {kConvolutionForward, kForwardX, kTypeDescriptor, 8},
    {kConvolutionForward, kForwardY, kTypeDescriptor, 8},
    {kConvolutionBackwardData, kDataAlpha, kTypeFloat, 4},
    {kConvolutionBackwardData, kDataBeta, kTypeFloat, 4},
    {kConvolutionBackwardData, kDataConvolution, kTypeDescriptor, 8},
    {kConvolutionBackwardData, kDataW, kTypeDescriptor, 8},
    {kConvolutionBackwardData, kDataDx, kTypeDescriptor, 8},
    {kConvolutionBackwardData, kDataDy, kTypeDescriptor, 8},
    {kConvolutionBackwardFilter, kFilterAlpha, kTypeFloat, 4},
    {kConvolutionBackwardFilter, kFilterBeta, kTypeFloat, 4},
    {kConvolutionBackwardFilter, kFilterConvolution, kTypeDescriptor, 8},
    {kConvolutionBackwardFilter, kFilterDw, kTypeDescriptor, 8},
    {kConvolutionBackwardFilter, kFilterX, kTypeDescriptor, 8},
    {kConvolutionBackwardFilter, kFilterDy, kTypeDescriptor, 8},
    {kPointwiseOperation, kOperationPointwise, kTypeDescriptor, 8},
    {kPointwiseOperation, kOperationX, kTypeDescriptor, 8},
    {kPointwiseOperation, kOperationB, kTypeDescriptor, 8},
    {kPointwiseOperation, kOperationY, kTypeDescriptor, 8},
    {kOperationGraph, kGraphHandle, kTypeHandle, 8},
    {kOperationGraph, kGraphOperations, kTypeDescriptor, 8},
    {kTensor, kTensorAlignment, kTypeInt64, 8},
    {kTensor, kTensorType, kTypeDataType, 4},
    {kTensor, kTensorDims, kTypeInt64, 8},
    {kTensor, kTensorStrides, kTypeInt64, 8},
    {kTensor, kTensorId, kTypeInt64, 8},
    {kTensor, kTensorIsVirtual, kTypeBoolean, 1},
    {kTensor, kTensorIsByValue, kTypeBoolean, 1},
    {kMatmul, kMatmulType, kTypeDataType, 4},
    {kMatmulOperation, kMatmulA, kTypeDescriptor, 8},
    {kMatmulOperation, kMatmulB, kTypeDescriptor, 8},
    {kMatmulOperation, kMatmulC, kTypeDescriptor, 8},
    {kMatmulOperation, kOperationMatmul, kTypeDescriptor, 8},
    {kReduction, kReductionMode, kTypeReduction, 4},
    {kReduction, kReductionType, kTypeDataType, 4},
    {kReductionOperation, kReductionX, kTypeDescriptor, 8},
    {kReductionOperation, kReductionY, kTypeDescriptor, 8},
    {kReductionOperation, kOperationReduction, kTypeDescriptor, 8},
    {kVariantPack, kPackIds, kTypeInt64, 8},
    {kVariantPack, kPackPointers, kTypePointer, 8},
    {kVariantPack, kPackWorkspace, kTypePointer, 8}};

std::vector<int> Ints(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

Named TensorOf(const Descriptor* d) {
  Named named;
  if (d == nullptr || d->kind != kTensor) return named;
  named.tensor = {d->One<int>(kTensorType, -1),
                  Ints(d->List<int64_t>(kTensorDims)),
                  Ints(d->List<int64_t>(kTensorStrides))};
  named.id = d->One<int64_t>(kTensorId);
  named.is_virtual = d->One<uint8_t>(kTensorIsVirtual) != 0;
  named.by_value = d->One<uint8_t>(kTensorIsByValue) != 0;
  return named;
}

int FinishTensor(const Descriptor& d) {
  const Named named = TensorOf(&d);
  const int type = named.tensor.type;
  const bool known = type == fake::kFloat32 || type == fake::kFloat16 ||
                     type == fake::kBFloat16;
  if (named.by_value && (named.is_virtual || type != fake::kFloat32 ||
                         fake::SizeOf(named.tensor) != 1))
    return kBadParam;
  return known && named.id > 0 && named.tensor.dims.size() >= 4 &&
                 named.tensor.dims.size() == named.tensor.strides.size() &&
                 d.One<int64_t>(kTensorAlignment) % 4 == 0
             ? kSuccess
             : kBadParam;
}

// The attributes of a part of a convolution.
struct PartAttributes {
  int alpha, beta, convolution, x, w, y;
};
PartAttributes AttributesOf(int kind) {
  if (kind == kConvolutionBackwardData)
    return {kDataAlpha, kDataBeta, kDataConvolution, kDataDx, kDataW, kDataDy};
  if (kind == kConvolutionBackwardFilter)
    return {kFilterAlpha, kFilterBeta, kFilterConvolution,
            kFilterX,     kFilterDw,   kFilterDy};
  return {kForwardAlpha, kForwardBeta, kForwardConvolution,
          kForwardX,     kForwardW,    kForwardY};
}

int FinishPart(Descriptor* d) {
  const PartAttributes part = AttributesOf(d->kind);
  const Descriptor* c = d->Node(part.convolution);
  if (c == nullptr || d->One<float>(part.alpha) != 1 ||
      d->One<float>(part.beta, 1) != 0)
    return kBadParam;
  const Named x = TensorOf(d->Node(part.x)), w = TensorOf(d->Node(part.w)),
              y = TensorOf(d->Node(part.y));
  Operation& op = d->operation;
  op.kind = d->kind;
  const bool data = op.kind == kConvolutionBackwardData;
  const bool forward = op.kind == kConvolutionForward;
  op.x = data ? w : x;
  op.other = forward ? w : y;
  op.y = data ? x : forward ? y : w;
  op.work.paddings = Ints(c->List<int64_t>(kConvolutionPrePaddings));
  op.work.strides = Ints(c->List<int64_t>(kConvolutionStrides));
  op.work.dilations = Ints(c->List<int64_t>(kConvolutionDilations));
  if (x.id == 0 || w.id == 0 || y.id == 0 || w.tensor.dims[1] == 0)
    return kBadParam;
  op.work.groups = x.tensor.dims[1] / w.tensor.dims[1];
  Tensor made = y.tensor;
  if (forward) made.type = x.tensor.type;  // whatever it is stored as
  return op.work.groups > 0 && fake::Fits(x.tensor, w.tensor, made, op.work)
             ? kSuccess
             : kBadParam;
}

int FinishConvolution(const Descriptor& d) {
  const auto n = static_cast<size_t>(d.One<int64_t>(kConvolutionDims));
  for (const int list : {kConvolutionPrePaddings, kConvolutionPostPaddings,
                         kConvolutionStrides, kConvolutionDilations})
    if (d.List<int64_t>(list).size() != n) return kBadParam;
  return n > 0 && d.One<int>(kConvolutionType, -1) == fake::kFloat32 &&
                 d.One<int>(kConvolutionMode) == 1 &&
                 d.List<int64_t>(kConvolutionPrePaddings) ==
                     d.List<int64_t>(kConvolutionPostPaddings)
             ? kSuccess
             : kNotSupported;
}

int FinishFunction(Descriptor* d) {
  const Descriptor* mode = d->Node(kOperationPointwise);
  if (mode == nullptr) return kBadParam;
  Operation& op = d->operation;
  op.kind = d->kind;
  op.mode = mode->One<int>(kPointwiseMode, -1);
  op.top = mode->One<double>(kPointwiseReluUpper);
  op.x = TensorOf(d->Node(kOperationX));
  op.other = TensorOf(d->Node(kOperationB));
  op.y = TensorOf(d->Node(kOperationY));
  if (op.x.id == 0 || op.y.id == 0 || op.x.tensor.dims != op.y.tensor.dims)
    return kBadParam;
  if (op.mode == kReluForward || op.mode == kExp)
    return op.other.id == 0 ? kSuccess : kBadParam;
  if ((op.mode != kAdd && op.mode != kMultiply && op.mode != kSubtract &&
       op.mode != kDivide) ||
      op.other.id == 0 ||
      op.other.tensor.dims.size() != op.y.tensor.dims.size())
    return kBadParam;
  for (size_t i = 0; i < op.y.tensor.dims.size(); ++i)
    if (op.other.tensor.dims[i] != 1 &&
        op.other.tensor.dims[i] != op.y.tensor.dims[i])
      return kBadParam;
  return kSuccess;
}

// C = A B; the last two axes are the matrices', those before are the batch.
int FinishMatmul(Descriptor* d) {
  if (d->Node(kOperationMatmul) == nullptr) return kBadParam;
  Operation& op = d->operation;
  op.kind = d->kind;
  op.x = TensorOf(d->Node(kMatmulA));
  op.other = TensorOf(d->Node(kMatmulB));
  op.y = TensorOf(d->Node(kMatmulC));
  const auto &a = op.x.tensor.dims, &b = op.other.tensor.dims,
             &c = op.y.tensor.dims;
  if (op.x.id == 0 || op.other.id == 0 || op.y.id == 0 ||
      a.size() != c.size() || b.size() != c.size())
    return kBadParam;
  const size_t row = c.size() - 2, column = c.size() - 1;
  for (size_t i = 0; i < row; ++i)
    if (a[i] != c[i] || b[i] != c[i]) return kBadParam;
  return a[row] == c[row] && b[column] == c[column] && a[column] == b[row]
             ? kSuccess
             : kBadParam;
}

// Over the axes that have extent 1 in the result.
int FinishReduction(Descriptor* d) {
  const Descriptor* mode = d->Node(kOperationReduction);
  if (mode == nullptr) return kBadParam;
  Operation& op = d->operation;
  op.kind = d->kind;
  op.mode = mode->One<int>(kReductionMode, -1);
  op.x = TensorOf(d->Node(kReductionX));
  op.y = TensorOf(d->Node(kReductionY));
  if (op.x.id == 0 || op.y.id == 0 ||
      op.x.tensor.dims.size() != op.y.tensor.dims.size() ||
      (op.mode != kReduceAdd && op.mode != kReduceMax))
    return kBadParam;
  for (size_t i = 0; i < op.y.tensor.dims.size(); ++i)
    if (op.y.tensor.dims[i] != 1 && op.y.tensor.dims[i] != op.x.tensor.dims[i])
      return kBadParam;
  return kSuccess;
}

// A virtual tensor is written once, before it is read; the last result is not
// virtual, and all others are.
int FinishGraph(Descriptor* d) {
  auto program = std::make_shared<Program>();
  std::set<int64_t> written;
  for (const auto* node : d->List<Descriptor*>(kGraphOperations)) {
    if (node == nullptr || !node->done || node->operation.kind == 0)
      return kBadParam;
    const Operation& op = node->operation;
    for (const Named* read : {&op.x, &op.other})
      if (read->is_virtual != (written.count(read->id) > 0)) return kBadParam;
    if (op.y.by_value || !written.insert(op.y.id).second) return kBadParam;
    if (!program->empty() && !program->back().y.is_virtual) return kBadParam;
    program->push_back(op);
  }
  if (program->empty() || program->back().y.is_virtual || !d->Has(kGraphHandle))
    return kBadParam;
  d->program = std::move(program);
  return kSuccess;
}

// A part of a convolution; or a forward one without groups, and functions of
// each what the one before it made, in float32 on the way. Everything that is
// an image or a filter lies alike.
bool IsConvolution(const Program& program) {
  const Operation& first = program.front();
  if (!first.IsConvolution() ||
      !fake::LieAlike(first.x.tensor, first.other.tensor, first.y.tensor))
    return false;
  if (program.size() == 1) return true;
  if (first.kind != kConvolutionForward || first.work.groups != 1) return false;
  for (size_t i = 1; i < program.size(); ++i)
    if (program[i].x.id != program[i - 1].y.id ||
        program[i].x.tensor.type != fake::kFloat32 ||
        (!program[i].Is(kPointwiseOperation, kAdd) &&
         !program[i].Is(kPointwiseOperation, kReluForward)))
      return false;
  return true;
}

bool IsHalf(const Named& named) {
  return named.tensor.type == fake::kFloat16 ||
         named.tensor.type == fake::kBFloat16;
}

// Rows of a matrix lie one behind the other; `across` of one that is given
// transposed.
bool HasNext(const Named& named, bool across) {
  const auto& strides = named.tensor.strides;
  return strides[strides.size() - (across ? 2 : 1)] == 1;
}

// softmax(scale * Q K^T + bias) V of one type of halves, with widths that
// tensor cores take; scores are float32, probabilities are halves.
bool IsAttention(const Program& program) {
  std::vector<std::pair<int, int>> pattern = {{kMatmulOperation, 0},
                                              {kPointwiseOperation, kMultiply},
                                              {kReductionOperation, kReduceMax},
                                              {kPointwiseOperation, kSubtract},
                                              {kPointwiseOperation, kExp},
                                              {kReductionOperation, kReduceAdd},
                                              {kPointwiseOperation, kDivide},
                                              {kMatmulOperation, 0}};
  const bool bias = program.size() == pattern.size() + 1;
  if (bias) pattern.insert(pattern.begin() + 2, {kPointwiseOperation, kAdd});
  if (program.size() != pattern.size()) return false;
  for (size_t i = 0; i < program.size(); ++i)
    if (!program[i].Is(pattern[i].first, pattern[i].second)) return false;
  const size_t top = bias ? 3 : 2;  // the first reduction
  const Operation &first = program[0], &last = program.back();
  const auto reads = [&](size_t i, size_t x) {
    return program[i].x.id == program[x].y.id;
  };
  const auto with = [&](size_t i, size_t other) {
    return program[i].other.id == program[other].y.id;
  };
  if (!reads(1, 0) || !program[1].other.by_value || (bias && !reads(2, 1)) ||
      !reads(top, top - 1) || !reads(top + 1, top - 1) || !with(top + 1, top) ||
      !reads(top + 2, top + 1) || !reads(top + 3, top + 2) ||
      !reads(top + 4, top + 2) || !with(top + 4, top + 3) ||
      !reads(top + 5, top + 4))
    return false;
  for (size_t i = 0; i + 2 < program.size(); ++i)
    if (program[i].y.tensor.type != fake::kFloat32) return false;
  const int type = first.x.tensor.type;
  for (const Named* named : {&first.other, &last.x, &last.other, &last.y})
    if (named->tensor.type != type) return false;
  if (bias && program[2].other.tensor.type != type) return false;
  const int width = first.x.tensor.dims[3], values = last.y.tensor.dims[3];
  return IsHalf(first.x) && width % 8 == 0 && width <= 256 && values % 8 == 0 &&
         values <= 256 && HasNext(first.x, false) &&
         HasNext(first.other, true) && HasNext(last.other, false) &&
         HasNext(last.y, false);
}

int Finish(Descriptor* d) {
  switch (d->kind) {
    case kTensor:
      return FinishTensor(*d);
    case kConvolution:
      return FinishConvolution(*d);
    case kPointwise:
      return d->One<int>(kPointwiseMathType, -1) == fake::kFloat32 ? kSuccess
                                                                   : kBadParam;
    case kConvolutionForward:
    case kConvolutionBackwardData:
    case kConvolutionBackwardFilter:
      return FinishPart(d);
    case kPointwiseOperation:
      return FinishFunction(d);
    case kMatmul:
      return d->One<int>(kMatmulType, -1) == fake::kFloat32 ? kSuccess
                                                            : kBadParam;
    case kMatmulOperation:
      return FinishMatmul(d);
    case kReduction:
      return d->One<int>(kReductionType, -1) == fake::kFloat32 ? kSuccess
                                                               : kBadParam;
    case kReductionOperation:
      return FinishReduction(d);
    case kOperationGraph:
      return FinishGraph(d);
    case kHeuristics: {
      const Descriptor* graph = d->Node(kHeuristicsGraph);
      if (graph == nullptr) return kBadParam;
      d->program = graph->program;
      return IsConvolution(*d->program) || IsAttention(*d->program)
                 ? kSuccess
                 : kNotSupported;
    }
    case kPlan: {
      const Descriptor* config = d->One<Descriptor*>(kPlanConfig);
      if (config == nullptr || config->engine < 0 || !d->Has(kPlanHandle))
        return kBadParam;
      d->program = config->program;
      d->engine = config->engine;
      ++plans;
      return d->engine == kWithoutPlan ? kNotSupported : kSuccess;
    }
    case kVariantPack:
      return d->List<int64_t>(kPackIds).size() ==
                     d->List<void*>(kPackPointers).size()
                 ? kSuccess
                 : kBadParam;
    default:
      return kBadParam;  // nobody finalizes it
  }
}

int64_t BytesOf(int64_t engine) {
  return engine == kPlain      ? kModestBytes
         : engine == kCompiled ? kCompiledBytes
                               : kGreedyBytes;
}

// Pieces of work that an engine takes; each costs the fake driver the same.
int PiecesOf(int64_t engine) {
  return engine == kRounding ? 1 : engine == kPlain ? 2 : 3;
}

int runs = 0, fused_runs = 0;

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91902; }
int cudnnCreate(void** handle) {
  static int one = 1;
  *handle = &one;
  return kSuccess;
}
int cudnnSetStream(void*, void* stream) {
  return stream == nullptr ? kBadParam : kSuccess;
}

int cudnnBackendCreateDescriptor(int kind, void** handle) {
  auto* d = new Descriptor;
  d->kind = kind;
  *handle = d;
  return kSuccess;
}
int cudnnBackendDestroyDescriptor(void* handle) {
  delete static_cast<Descriptor*>(handle);
  return kSuccess;
}
int cudnnBackendFinalize(void* handle) {
  auto* d = static_cast<Descriptor*>(handle);
  if (d->done) return kBadParam;
  const int status = Finish(d);
  d->done = status == kSuccess;
  return status;
}
int cudnnBackendSetAttribute(void* handle, int attribute, int type,
                             int64_t count, const void* values) {
  auto* d = static_cast<Descriptor*>(handle);
  if (d->done || count < 1) return kBadParam;
  for (const Known& known : kKnown) {
    if (known.kind != d->kind || known.attribute != attribute) continue;
    if (known.type != type) return kBadParam;
    const auto* bytes = static_cast<const uint8_t*>(values);
    d->values[attribute].assign(
        bytes, bytes + static_cast<size_t>(count) * known.bytes);
    return kSuccess;
  }
  return kBadParam;
}
int cudnnBackendGetAttribute(void* handle, int attribute, int type,
                             int64_t most, int64_t* count, void* values) {
  const auto* d = static_cast<Descriptor*>(handle);
  *count = 0;
  if (attribute == kHeuristicsResults && type == kTypeDescriptor && d->done) {
    const bool first = d->One<int>(kHeuristicsMode) == kModeA;
    for (const int64_t engine :
         {kCompiled, kRounding, kNondeterministic, kWithoutPlan, kPlain}) {
      if ((engine == kPlain) == first || *count == most) continue;
      auto* config = static_cast<Descriptor**>(values)[(*count)++];
      config->program = d->program;
      config->engine = engine;
    }
    return kSuccess;
  }
  if (attribute == kConfigEngine && type == kTypeDescriptor && most == 1) {
    (*static_cast<Descriptor**>(values))->engine = d->engine;
    *count = 1;
    return kSuccess;
  }
  if (attribute == kEngineNumber && type == kTypeInt64 && most == 1) {
    *static_cast<int64_t*>(values) = 10 + d->engine;
    *count = 1;
    return kSuccess;
  }
  if (attribute == kEngineBehavior && type == kTypeBehaviorNote && most > 1) {
    if (d->engine == kCompiled)
      static_cast<int*>(values)[(*count)++] = kBehaviorCompiles;
    return kSuccess;
  }
  if (attribute == kEngineNotes && type == kTypeNumericalNote && most > 1) {
    auto* notes = static_cast<int*>(values);
    if (d->engine == kRounding) notes[(*count)++] = kNoteTensorCore;
    if (d->engine == kNondeterministic)
      notes[(*count)++] = kNoteNondeterministic;
    return kSuccess;
  }
  if (attribute == kPlanWorkspace && type == kTypeInt64 && d->done) {
    *static_cast<int64_t*>(values) = BytesOf(d->engine);
    *count = 1;
    return kSuccess;
  }
  return kBadParam;
}
int cudnnBackendExecute(void*, void* plan_handle, void* pack_handle) {
  const auto* plan = static_cast<Descriptor*>(plan_handle);
  const auto* pack = static_cast<Descriptor*>(pack_handle);
  if (!plan->done || !pack->done) return kBadParam;
  std::map<int64_t, void*> memory;
  const auto ids = pack->List<int64_t>(kPackIds);
  const auto pointers = pack->List<void*>(kPackPointers);
  for (size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers[i];
  void* workspace = pack->One<void*>(kPackWorkspace);
  // A number that is given by value is read now, not when its turn comes.
  std::map<int64_t, double> single;
  for (const Operation& op : *plan->program)
    for (const Named* named : {&op.x, &op.other, &op.y}) {
      if (named->id == 0 || named->is_virtual) continue;
      if (memory[named->id] == nullptr) return kBadParam;
      if (named->by_value)
        single[named->id] = double{*static_cast<float*>(memory[named->id])};
    }
  if (workspace == nullptr) return kBadParam;
  ++runs;
  fused_runs += plan->program->size() > 1;
  const auto bytes = static_cast<size_t>(BytesOf(plan->engine));
  pd::Enqueue([program = plan->program, memory, single, workspace, bytes] {
    std::memset(workspace, 0xff, bytes);
    fake::Run(*program, memory, single);
  });
  for (int i = 1; i < PiecesOf(plan->engine); ++i) pd::Enqueue([] {});
  return kSuccess;
}

// For tests: how often graphs were run, and those of several operations.
int fake_cudnn_runs() { return runs; }
int fake_cudnn_fused_runs() { return fused_runs; }
// How many plans were made.
int fake_cudnn_plans() { return plans; }

}  // extern "C"
