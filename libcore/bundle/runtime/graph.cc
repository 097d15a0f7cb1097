// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/graph.h"

#include <cstring>
#include <utility>

#include "libcore/bundle/runtime/kernel.h"

namespace pd_run {
namespace {

// Takes numbers off the front of a range of bytes. Past the end everything is
// zero and ok() is false.
class Stream {
 public:
  Stream(const char* begin, size_t size) : next_(begin), left_(size) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return left_ == 0; }

  template <typename T>
  T Take() {
    T number{};
    if (const char* from = Bytes(sizeof(T)))
      std::memcpy(&number, from, sizeof(T));
    return number;
  }
  // A count of things that take up `each` bytes or more, so that damage cannot
  // ask for more memory than the file has bytes.
  size_t Count(size_t each) {
    const size_t count = Take<uint32_t>();
    if (count <= left_ / each) return count;
    ok_ = false;
    return 0;
  }
  std::string String() {
    const size_t length = Count(1);
    const char* from = Bytes(length);
    return from == nullptr ? "" : std::string(from, length);
  }
  template <typename T>
  std::vector<T> List() {
    std::vector<T> list(Count(sizeof(T)));
    for (T& item : list) item = Take<T>();
    return list;
  }

 private:
  const char* Bytes(size_t size) {
    if (size > left_) ok_ = false;
    if (!ok_) return nullptr;
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  const char* next_;
  size_t left_;
  bool ok_ = true;
};

class Reader {
 public:
  Reader(Graph* graph, Error* error) : graph_(graph), error_(error) {}

  bool Read() {
    const auto* bytes = static_cast<const char*>(graph_->bytes.data.get());
    const size_t size = graph_->bytes.size;
    Stream header(bytes, size < kHeaderBytes ? size : kHeaderBytes);
    const uint64_t magic = header.Take<uint64_t>();
    if (!header.ok() || std::memcmp(&magic, kMagic, kMagicBytes) != 0)
      return Damaged("it does not begin as a bundle does");
    const uint32_t version = header.Take<uint32_t>();
    const uint32_t zero = header.Take<uint32_t>();
    const uint64_t whole = header.Take<uint64_t>();
    graph_bytes_ = header.Take<uint64_t>();
    if (!header.ok()) return Damaged("it ends within its header");
    if (version != kFormatVersion || zero != 0)
      return error_->Fail(PD_RUN_UNSUPPORTED,
                          "the bundle has version %u; this library reads %u",
                          version, kFormatVersion);
    if (whole != size) return Damaged("it does not have the size it says");
    if (graph_bytes_ > size - kHeaderBytes)
      return Damaged("its graph ends beyond the file");
    Stream stream(bytes + kHeaderBytes, static_cast<size_t>(graph_bytes_));
    return ReadValues(&stream) && ReadEnds(&stream) && ReadNodes(&stream);
  }

 private:
  bool Damaged(const char* why) {
    return error_->Fail(PD_RUN_BAD_FILE, "the bundle is damaged: %s", why);
  }

  bool ReadValues(Stream* stream) {
    graph_->values.resize(stream->Count(20));
    made_.resize(graph_->values.size());
    for (size_t i = 0; i < made_.size(); ++i) {
      Value& value = graph_->values[i];
      value.name = stream->String();
      const uint32_t dtype = stream->Take<uint32_t>();
      const uint32_t rank = stream->Take<uint32_t>();
      if (dtype >= kDTypes || rank > kMaxRank)
        return Damaged("a value has no such type or too many dimensions");
      value.dtype = static_cast<DType>(dtype);
      for (uint32_t d = 0; d < rank; ++d)
        value.shape.Append(stream->Take<int64_t>());
      const uint64_t place = stream->Take<uint64_t>();
      if (!stream->ok()) return Damaged("its values end too early");
      if (place == 0) continue;
      if (!SetConstant(place, &value)) return false;
      made_[i] = true;
    }
    return true;
  }

  bool SetConstant(uint64_t place, Value* value) {
    int64_t count = 0;
    const size_t size = graph_->bytes.size;
    if (!CountElements(value->shape, &count))
      return Damaged("a weight has a shape that cannot be");
    if (place < kHeaderBytes + graph_bytes_ || place > size ||
        place % kAlignment != 0 ||
        static_cast<uint64_t>(count) > (size - place) / SizeOf(value->dtype))
      return Damaged("a weight lies outside of the file");
    value->constant =
        static_cast<const char*>(graph_->bytes.data.get()) + place;
    return true;
  }

  bool ReadEnds(Stream* stream) {
    graph_->inputs = stream->List<uint32_t>();
    for (const uint32_t input : graph_->inputs) {
      if (!Make(input)) return false;
      for (int d = 0; d < graph_->values[input].shape.rank; ++d)
        if (graph_->values[input].shape[d] < -1)
          return Damaged("an input has a negative extent");
    }
    graph_->outputs = stream->List<uint32_t>();
    return true;
  }

  bool ReadNodes(Stream* stream) {
    graph_->nodes.resize(stream->Count(24));
    for (Node& node : graph_->nodes) {
      const std::string name = stream->String();
      node.layer = stream->String();
      node.inputs = stream->List<uint32_t>();
      node.outputs = stream->List<uint32_t>();
      node.ints = stream->List<int64_t>();
      node.floats = stream->List<float>();
      if (!stream->ok()) return Damaged("its nodes end too early");
      node.kernel = FindKernel(name);
      if (node.kernel == nullptr)
        return error_->Fail(PD_RUN_UNSUPPORTED,
                            "the kernel '%.64s' is not built in", name.c_str());
      for (const uint32_t input : node.inputs)
        if (input != kNoValue && !IsMade(input))
          return Damaged("a node reads a value that nothing has made");
      for (const uint32_t output : node.outputs)
        if (!Make(output)) return false;
      if (!FitsKernel(node)) return Damaged("a node does not fit its kernel");
    }
    for (const uint32_t output : graph_->outputs)
      if (!IsMade(output)) return Damaged("nothing makes an output");
    if (!stream->ok() || !stream->AtEnd())
      return Damaged("its graph has another size than it says");
    return true;
  }

  static bool FitsKernel(const Node& node) {
    const Kernel& kernel = *node.kernel;
    const auto fits = [](size_t count, Kernel::Arity arity) {
      return count >= arity.least && count <= arity.most;
    };
    if (!fits(node.inputs.size(), kernel.inputs) ||
        !fits(node.outputs.size(), kernel.outputs) ||
        !fits(node.ints.size(), kernel.ints) ||
        !fits(node.floats.size(), kernel.floats))
      return false;
    // Inputs that every node of the kernel has.
    for (size_t i = 0; i < kernel.inputs.least; ++i)
      if (node.inputs[i] == kNoValue) return false;
    return true;
  }

  bool IsMade(uint32_t value) const {
    return value < made_.size() && made_[value];
  }
  bool Make(uint32_t value) {
    if (value >= made_.size() || made_[value])
      return Damaged("a value is made twice, or is none");
    made_[value] = true;
    return true;
  }

  Graph* graph_;
  Error* error_;
  uint64_t graph_bytes_ = 0;
  std::vector<bool> made_;
};

}  // namespace

std::shared_ptr<const Graph> ReadGraph(FileBytes bytes, Error* error) {
  auto graph = std::make_shared<Graph>();
  graph->bytes = std::move(bytes);
  return Reader(graph.get(), error).Read() ? graph : nullptr;
}

}  // namespace pd_run
