// SPDX-License-Identifier: Apache-2.0
// The functions of pd_run.h. No exception leaves them.
#include "libcore/bundle/runtime/pd_run.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "libcore/bundle/runtime/graph.h"
#include "libcore/bundle/runtime/plan.h"

#ifndef PD_RUN_VERSION
#define PD_RUN_VERSION "unknown"
#endif

struct pd_run_model {
  std::shared_ptr<const pd_run::Graph> graph;
  std::unique_ptr<pd_run::Threads> threads;
  size_t memory_limit = 0;
  // An input has its memory once it is asked for, or the model runs.
  std::vector<pd_run::Tensor> inputs;
  std::vector<std::shared_ptr<void>> memory;
  std::unique_ptr<pd_run::Plan> plan;  // null: not made for `inputs` yet
};

namespace pd_run {
namespace {

thread_local std::string last_error;

// Calls body(error), and keeps why it failed.
template <typename Body>
pd_run_status Guarded(const Body& body) {
  Error error;
  try {
    if (body(&error)) return PD_RUN_OK;
  } catch (const std::bad_alloc&) {
    error.Fail(PD_RUN_NO_MEMORY, "no memory is left");
  } catch (const std::exception& e) {
    error.Fail(PD_RUN_NO_MEMORY, "%s", e.what());
  }
  try {
    last_error = error.text();
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return error.status();
}

bool IsNull(const void* pointer, const char* name, Error* error) {
  if (pointer != nullptr) return false;
  error->Fail(PD_RUN_INVALID_ARGUMENT, "'%s' is null", name);
  return true;
}

constexpr int kMostThreads = 256;

void AddInputs(pd_run_model* model) {
  for (const uint32_t input : model->graph->inputs) {
    const Value& value = model->graph->values[input];
    model->inputs.push_back({value.dtype, value.shape, nullptr, false});
  }
  model->memory.resize(model->inputs.size());
}

bool Open(FileBytes bytes, const pd_run_options* options, pd_run_model** model,
          Error* error) {
  const int threads = options == nullptr ? 0 : options->threads;
  if (threads < 0 || threads > kMostThreads)
    return error->Fail(PD_RUN_INVALID_ARGUMENT, "%d threads; expected 0 to %d",
                       threads, kMostThreads);
  auto opened = std::make_unique<pd_run_model>();
  opened->graph = ReadGraph(std::move(bytes), error);
  if (opened->graph == nullptr) return false;
  opened->memory_limit = options == nullptr ? 0 : options->memory_limit;
  opened->threads = std::make_unique<Threads>(std::max(threads, 1));
  AddInputs(opened.get());
  *model = opened.release();
  return true;
}

bool IsOpen(const Shape& shape) {
  return std::count(shape.dims, shape.dims + shape.rank, -1) > 0;
}

// Memory for an input whose extents are known; its elements are zero.
bool AllocateInput(pd_run_model* model, size_t i, Error* error) {
  Tensor& input = model->inputs[i];
  if (input.data != nullptr) return true;
  const char* name = model->graph->values[model->graph->inputs[i]].name.c_str();
  int64_t count = 0;
  if (!CountElements(input.shape, &count))
    return error->Fail(PD_RUN_INVALID_ARGUMENT,
                       "input '%s' of shape %s is too large", name,
                       ToString(input.shape).c_str());
  const size_t limit = model->memory_limit;
  if (limit == 0 || input.bytes() <= limit)
    model->memory[i] = Allocate(input.bytes());
  if (model->memory[i] == nullptr)
    return error->Fail(PD_RUN_NO_MEMORY, "no memory for the %zu bytes of '%s'",
                       input.bytes(), name);
  input.data = model->memory[i].get();
  std::fill_n(input.as<char>(), input.bytes(), '\0');
  return true;
}

bool MakePlan(pd_run_model* model, Error* error) {
  if (model->plan != nullptr) return true;
  for (size_t i = 0; i < model->inputs.size(); ++i) {
    const Shape& shape = model->inputs[i].shape;
    if (IsOpen(shape))
      return error->Fail(
          PD_RUN_INVALID_ARGUMENT,
          "input '%s' has shape %s: pd_run_set_shape is to say the rest",
          model->graph->values[model->graph->inputs[i]].name.c_str(),
          ToString(shape).c_str());
    if (!AllocateInput(model, i, error)) return false;
  }
  model->plan = Plan::Make(model->graph, model->inputs, model->threads.get(),
                           model->memory_limit, error);
  return model->plan != nullptr;
}

bool Get(pd_run_model* model, pd_run_side side, size_t index,
         pd_run_tensor* described, Error* error) {
  const Graph& graph = *model->graph;
  const bool input = side == PD_RUN_INPUT;
  const std::vector<uint32_t>& ends = input ? graph.inputs : graph.outputs;
  if ((!input && side != PD_RUN_OUTPUT) || index >= ends.size())
    return error->Fail(PD_RUN_INVALID_ARGUMENT, "there is no %s %zu of %zu",
                       input ? "input" : "output", index, ends.size());
  const bool open = input && IsOpen(model->inputs[index].shape);
  if (input ? !open && !AllocateInput(model, index, error)
            : !MakePlan(model, error))
    return false;
  const Tensor& tensor =
      input ? model->inputs[index] : model->plan->tensor(ends[index]);
  *described = pd_run_tensor{};
  described->name = graph.values[ends[index]].name.c_str();
  described->dtype = static_cast<pd_run_dtype>(tensor.dtype);
  described->rank = tensor.shape.rank;
  std::copy_n(tensor.shape.dims, tensor.shape.rank, described->dims);
  if (open) return true;
  described->data = tensor.data;
  described->bytes = tensor.bytes();
  return true;
}

bool SetShape(pd_run_model* model, size_t input, int32_t rank,
              const int64_t* dims, Error* error) {
  if (input >= model->inputs.size())
    return error->Fail(PD_RUN_INVALID_ARGUMENT, "there is no input %zu of %zu",
                       input, model->inputs.size());
  const Value& value = model->graph->values[model->graph->inputs[input]];
  if (rank != value.shape.rank)
    return error->Fail(PD_RUN_INVALID_ARGUMENT,
                       "input '%s' has shape %s; expected rank %d, not %d",
                       value.name.c_str(), ToString(value.shape).c_str(),
                       value.shape.rank, static_cast<int>(rank));
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    shape.Append(dims[i]);
    if (dims[i] < 0 || (value.shape[i] != -1 && dims[i] != value.shape[i]))
      return error->Fail(PD_RUN_INVALID_ARGUMENT,
                         "input '%s' has shape %s; extent %d cannot be %lld",
                         value.name.c_str(), ToString(value.shape).c_str(), i,
                         static_cast<long long>(dims[i]));
  }
  if (model->inputs[input].shape == shape) return true;
  model->inputs[input].shape = shape;
  model->inputs[input].data = nullptr;
  model->memory[input].reset();
  model->plan.reset();
  return true;
}

}  // namespace
}  // namespace pd_run

const char* pd_run_version(void) { return PD_RUN_VERSION; }

const char* pd_run_error(void) { return pd_run::last_error.c_str(); }

pd_run_status pd_run_open(const char* path, const pd_run_options* options,
                          pd_run_model** model) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    if (pd_run::IsNull(path, "path", error) ||
        pd_run::IsNull(model, "model", error))
      return false;
    pd_run::FileBytes bytes;
    return pd_run::OpenFile(path, &bytes, error) &&
           pd_run::Open(std::move(bytes), options, model, error);
  });
}

pd_run_status pd_run_open_memory(const void* bytes, size_t size,
                                 const pd_run_options* options,
                                 pd_run_model** model) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    if (pd_run::IsNull(bytes, "bytes", error) ||
        pd_run::IsNull(model, "model", error))
      return false;
    if (reinterpret_cast<uintptr_t>(bytes) % pd_run::kAlignment != 0)
      return error->Fail(PD_RUN_INVALID_ARGUMENT,
                         "'bytes' is not a multiple of %zu",
                         pd_run::kAlignment);
    // The caller owns the bytes: nothing frees them here.
    return pd_run::Open({{bytes, [](const void*) {}}, size}, options, model,
                        error);
  });
}

pd_run_status pd_run_clone(const pd_run_model* model, pd_run_model** clone) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    if (pd_run::IsNull(model, "model", error) ||
        pd_run::IsNull(clone, "clone", error))
      return false;
    auto made = std::make_unique<pd_run_model>();
    made->graph = model->graph;
    made->threads = std::make_unique<pd_run::Threads>(model->threads->count());
    made->memory_limit = model->memory_limit;
    pd_run::AddInputs(made.get());
    for (size_t i = 0; i < made->inputs.size(); ++i)
      made->inputs[i].shape = model->inputs[i].shape;
    *clone = made.release();
    return true;
  });
}

size_t pd_run_count(const pd_run_model* model, pd_run_side side) {
  if (model == nullptr) return 0;
  return side == PD_RUN_INPUT ? model->graph->inputs.size()
                              : model->graph->outputs.size();
}

pd_run_status pd_run_get(pd_run_model* model, pd_run_side side, size_t index,
                         pd_run_tensor* tensor) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    return !pd_run::IsNull(model, "model", error) &&
           !pd_run::IsNull(tensor, "tensor", error) &&
           pd_run::Get(model, side, index, tensor, error);
  });
}

pd_run_status pd_run_set_shape(pd_run_model* model, size_t input, int32_t rank,
                               const int64_t* dims) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    return !pd_run::IsNull(model, "model", error) &&
           !(rank > 0 && pd_run::IsNull(dims, "dims", error)) &&
           pd_run::SetShape(model, input, rank, dims, error);
  });
}

pd_run_status pd_run_run(pd_run_model* model) {
  return pd_run::Guarded([&](pd_run::Error* error) {
    return !pd_run::IsNull(model, "model", error) &&
           pd_run::MakePlan(model, error) && model->plan->Run(error);
  });
}

void pd_run_close(pd_run_model* model) { delete model; }
