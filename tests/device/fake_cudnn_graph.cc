// SPDX-License-Identifier: Apache-2.0
// The fake cuDNN's graphs: descriptors that are checked when they are
// finalized, a convolution with sums and a ReLU behind it, and four engines, of
// which one rounds, one is not deterministic, one has no plan, and one is plain
// and modest. A convolution of groups has no engine, as with the real library's
// fused kernels.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "libcore/device/cudnn_graph.h"
#include "tests/device/fake_convolution.h"
#include "tests/device/fake_queue.h"

namespace {

using namespace pd::cudnn_graph;  // NOLINT: its numbers
using fake::Place;
using fake::Tensor;

constexpr int kSuccess = 0, kBadParam = 2000, kNotSupported = 3000;
constexpr int64_t kGreedyBytes = int64_t{3} << 20, kModestBytes = 2048;
constexpr int64_t kRounding = 0, kNondeterministic = 1, kWithoutPlan = 2,
                  kPlain = 3;

struct Named {
  Tensor tensor;
  int64_t id = 0;
  bool is_virtual = false;
};
struct Operation {
  bool convolution = false;
  fake::Work work;
  int mode = 0;  // of a function
  double top = 0;
  Named x, other, y;  // `other`: the filter, what is added
};
using Program = std::vector<Operation>;

struct Descriptor {
  int kind = 0;
  bool done = false;
  std::map<int, std::vector<uint8_t>> values;
  // What it has become.
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
  return named;
}

int FinishTensor(const Descriptor& d) {
  const Named named = TensorOf(&d);
  const int type = named.tensor.type;
  const bool known = type == fake::kFloat32 ||
                     (!named.is_virtual &&
                      (type == fake::kFloat16 || type == fake::kBFloat16));
  return known && named.id > 0 && named.tensor.dims.size() >= 4 &&
                 named.tensor.dims.size() == named.tensor.strides.size() &&
                 d.One<int64_t>(kTensorAlignment) % 4 == 0
             ? kSuccess
             : kBadParam;
}

int FinishForward(Descriptor* d) {
  const Descriptor* c = d->Node(kForwardConvolution);
  if (c == nullptr || d->One<float>(kForwardAlpha) != 1 ||
      d->One<float>(kForwardBeta, 1) != 0)
    return kBadParam;
  Operation& op = d->operation;
  op.convolution = true;
  op.x = TensorOf(d->Node(kForwardX));
  op.other = TensorOf(d->Node(kForwardW));
  op.y = TensorOf(d->Node(kForwardY));
  op.work.paddings = Ints(c->List<int64_t>(kConvolutionPrePaddings));
  op.work.strides = Ints(c->List<int64_t>(kConvolutionStrides));
  op.work.dilations = Ints(c->List<int64_t>(kConvolutionDilations));
  if (op.x.id == 0 || op.other.id == 0 || op.y.id == 0 ||
      op.other.tensor.dims[1] == 0)
    return kBadParam;
  op.work.groups = op.x.tensor.dims[1] / op.other.tensor.dims[1];
  Tensor y = op.y.tensor;
  y.type = op.x.tensor.type;  // whatever it is stored as
  return op.work.groups > 0 &&
                 fake::Fits(op.x.tensor, op.other.tensor, y, op.work)
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
  op.mode = mode->One<int>(kPointwiseMode, -1);
  op.top = mode->One<double>(kPointwiseReluUpper);
  op.x = TensorOf(d->Node(kOperationX));
  op.other = TensorOf(d->Node(kOperationB));
  op.y = TensorOf(d->Node(kOperationY));
  if (op.x.id == 0 || op.y.id == 0 || op.x.tensor.dims != op.y.tensor.dims)
    return kBadParam;
  if (op.mode == kReluForward) return op.other.id == 0 ? kSuccess : kBadParam;
  if (op.mode != kAdd || op.other.id == 0) return kBadParam;
  for (size_t i = 0; i < op.y.tensor.dims.size(); ++i)
    if (op.other.tensor.dims[i] != 1 &&
        op.other.tensor.dims[i] != op.y.tensor.dims[i])
      return kBadParam;
  return kSuccess;
}

// What is virtual was written before it is read; the last result is not.
int FinishGraph(Descriptor* d) {
  auto program = std::make_shared<Program>();
  for (const auto* node : d->List<Descriptor*>(kGraphOperations)) {
    if (node == nullptr || !node->done) return kBadParam;
    program->push_back(node->operation);
  }
  if (program->empty() || !program->front().convolution ||
      program->back().y.is_virtual || !d->Has(kGraphHandle))
    return kBadParam;
  for (size_t i = 1; i < program->size(); ++i)
    if ((*program)[i].convolution ||
        (*program)[i].x.id != (*program)[i - 1].y.id ||
        !(*program)[i].x.is_virtual)
      return kBadParam;
  d->program = std::move(program);
  return kSuccess;
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
      return FinishForward(d);
    case kPointwiseOperation:
      return FinishFunction(d);
    case kOperationGraph:
      return FinishGraph(d);
    case kHeuristics: {
      const Descriptor* graph = d->Node(kHeuristicsGraph);
      if (graph == nullptr) return kBadParam;
      d->program = graph->program;
      return d->program->front().work.groups == 1 ? kSuccess : kNotSupported;
    }
    case kPlan: {
      const Descriptor* config = d->One<Descriptor*>(kPlanConfig);
      if (config == nullptr || config->engine < 0 || !d->Has(kPlanHandle))
        return kBadParam;
      d->program = config->program;
      d->engine = config->engine;
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

// Numbers of a tensor, where its strides say.
using Numbers = std::vector<double>;

void Convolve(const Operation& op, std::map<int64_t, void*> memory,
              Numbers* to) {
  fake::ForEachProduct(
      op.x.tensor, op.other.tensor, op.y.tensor, op.work,
      [&](int64_t i, int64_t j, int64_t k) {
        (*to)[static_cast<size_t>(k)] +=
            double{fake::Load(op.x.tensor.type, memory.at(op.x.id), i)} *
            fake::Load(op.other.tensor.type, memory.at(op.other.id), j);
      });
}

void Apply(const Operation& op, std::map<int64_t, void*> memory,
           const Numbers& from, Numbers* to) {
  std::vector<int> index(op.y.tensor.dims.size(), 0);
  do {
    double value = from[static_cast<size_t>(Place(op.x.tensor, index))];
    if (op.mode == kAdd) {
      std::vector<int> at = index;
      for (size_t d = 0; d < at.size(); ++d)
        if (op.other.tensor.dims[d] == 1) at[d] = 0;
      value += fake::Load(op.other.tensor.type, memory.at(op.other.id),
                          Place(op.other.tensor, at));
    } else {
      if (value < 0) value = 0;
      if (op.top > 0 && value > op.top) value = op.top;
    }
    (*to)[static_cast<size_t>(Place(op.y.tensor, index))] = value;
  } while (fake::Next(op.y.tensor.dims, &index));
}

void Run(const Program& program, const std::map<int64_t, void*>& memory) {
  Numbers last;
  for (const Operation& op : program) {
    Numbers next(static_cast<size_t>(fake::SizeOf(op.y.tensor)), 0.0);
    if (op.convolution)
      Convolve(op, memory, &next);
    else
      Apply(op, memory, last, &next);
    last = std::move(next);
  }
  const Named& y = program.back().y;
  for (size_t i = 0; i < last.size(); ++i)
    fake::Store(y.tensor.type, memory.at(y.id), static_cast<int64_t>(i),
                last[i]);
}

int64_t BytesOf(int64_t engine) {
  return engine == kPlain ? kModestBytes : kGreedyBytes;
}

int runs = 0;

}  // namespace

extern "C" {

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
         {kRounding, kNondeterministic, kWithoutPlan, kPlain}) {
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
  for (const Operation& op : *plan->program)
    for (const Named* named : {&op.x, &op.other, &op.y})
      if (named->id != 0 && !named->is_virtual && memory[named->id] == nullptr)
        return kBadParam;
  if (workspace == nullptr) return kBadParam;
  ++runs;
  const auto bytes = static_cast<size_t>(BytesOf(plan->engine));
  pd::Enqueue([program = plan->program, memory, workspace, bytes] {
    std::memset(workspace, 0xff, bytes);
    Run(*program, memory);
  });
  return kSuccess;
}

// For tests: how often a graph was run.
int fake_cudnn_graphs() { return runs; }

}  // extern "C"
