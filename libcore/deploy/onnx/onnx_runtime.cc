// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C interface is a table of functions that only grows: each is
// called by its place in version 1 of the table, which every release gives.
#include "libcore/deploy/onnx/onnx_runtime.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx/graph.h"
#include "libcore/device/dynamic_library.h"

namespace pd {
namespace {

// Places in the table.
enum Entry : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kCreateTensor = 49,
  kGetTensorData = 51,
  kGetElementType = 60,
  kGetRank = 61,
  kGetExtents = 62,
  kGetTypeAndShape = 65,
  kCreateCpuMemory = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemory = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTypeAndShape = 99,
  kReleaseSessionOptions = 100,
};

constexpr uint32_t kTableVersion = 1;
constexpr int kErrorsOnly = 3;  // how much it logs

struct Base {
  const void* const* (*table)(uint32_t version);
  const char* (*version)();
};

// Element types by ONNX's number.
std::optional<DType> DTypeOfNumber(int number) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
        DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
        DType::kUInt8, DType::kBool})
    if (OnnxNumberOf(dtype) == number) return dtype;
  return std::nullopt;
}

// An object of ONNX Runtime's; released at the end.
using Object = std::unique_ptr<void, std::function<void(void*)>>;

}  // namespace

struct OnnxRuntime::Functions {
  DynamicLibrary library;
  const void* const* table = nullptr;

  // Calls the function at a place; all that can fail give a status object.
  template <typename... Args>
  absl::Status Call(Entry place, Args... args) const {
    const auto function =
        reinterpret_cast<void* (*)(Args...)>(const_cast<void*>(table[place]));
    void* status = function(args...);
    if (status == nullptr) return absl::OkStatus();
    const auto message = reinterpret_cast<const char* (*)(const void*)>(
        const_cast<void*>(table[kGetErrorMessage]));
    const std::string text = message(status);
    Release(kReleaseStatus, status);
    return FailedPrecondition("ONNX Runtime: %s", text);
  }
  void Release(Entry place, void* object) const {
    reinterpret_cast<void (*)(void*)>(const_cast<void*>(table[place]))(object);
  }
  Object Own(void* object, Entry release) const {
    return Object(object, [this, release](void* o) { Release(release, o); });
  }

  absl::StatusOr<Object> Tensor(const Array& array, const void* memory) const {
    void* value = nullptr;
    PD_RETURN_IF_ERROR(
        Call(kCreateTensor, memory, const_cast<std::byte*>(array.bytes.get()),
             array.size_bytes(), array.shape.data(), array.shape.size(),
             static_cast<int>(OnnxNumberOf(array.dtype)), &value));
    return Own(value, kReleaseValue);
  }

  absl::StatusOr<Array> Read(void* value) const {
    void* info = nullptr;
    PD_RETURN_IF_ERROR(
        Call(kGetTypeAndShape, static_cast<const void*>(value), &info));
    const Object owned = Own(info, kReleaseTypeAndShape);
    int type = 0;
    size_t rank = 0;
    PD_RETURN_IF_ERROR(
        Call(kGetElementType, static_cast<const void*>(info), &type));
    PD_RETURN_IF_ERROR(Call(kGetRank, static_cast<const void*>(info), &rank));
    Shape shape(rank);
    PD_RETURN_IF_ERROR(
        Call(kGetExtents, static_cast<const void*>(info), shape.data(), rank));
    const auto dtype = DTypeOfNumber(type);
    if (!dtype.has_value())
      return Unimplemented("an output has ONNX's element type %d", type);
    void* data = nullptr;
    PD_RETURN_IF_ERROR(Call(kGetTensorData, value, &data));
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(Array array,
                        NewArray(*dtype, std::move(shape), &bytes));
    if (array.size_bytes() > 0) std::memcpy(bytes, data, array.size_bytes());
    return array;
  }
};

absl::StatusOr<OnnxRuntime> OnnxRuntime::Open() {
  LibraryQuery query;
  query.title = "ONNX Runtime";
  query.files = {"libonnxruntime.so", "libonnxruntime.so.1"};
  query.flag = "FLAGS_onnxruntime_dir";
  // Python's package has the file under its full version alone.
  for (const absl::string_view folder : absl::StrSplit(
           GetFlag<std::string>(query.flag), ':', absl::SkipEmpty())) {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(folder), ignored)) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, "libonnxruntime.so."))
        query.files.push_back(name);
    }
  }
  auto functions = std::make_shared<Functions>();
  PD_ASSIGN_OR_RETURN(functions->library, DynamicLibrary::Open(query));
  const Base* (*base)() = nullptr;
  PD_RETURN_IF_ERROR(functions->library.Bind("OrtGetApiBase", &base));
  const Base* found = base();
  if (found != nullptr) functions->table = found->table(kTableVersion);
  if (functions->table == nullptr)
    return Unavailable("'%s' does not give version %d of its interface",
                       functions->library.path(), kTableVersion);
  OnnxRuntime runtime;
  runtime.version_ = found->version();
  runtime.functions_ = std::move(functions);
  return runtime;
}

absl::StatusOr<NamedArrays> OnnxRuntime::Run(
    const std::string& path, const NamedArrays& feeds,
    const std::vector<std::string>& outputs) const {
  const Functions& f = *functions_;
  void *env = nullptr, *options = nullptr, *session = nullptr,
       *memory = nullptr;
  PD_RETURN_IF_ERROR(f.Call(kCreateEnv, kErrorsOnly, "pdkit", &env));
  const Object own_env = f.Own(env, kReleaseEnv);
  PD_RETURN_IF_ERROR(f.Call(kCreateSessionOptions, &options));
  const Object own_options = f.Own(options, kReleaseSessionOptions);
  PD_RETURN_IF_ERROR(f.Call(kSetIntraOpNumThreads, options, 1));
  PD_RETURN_IF_ERROR(f.Call(kCreateSession, static_cast<const void*>(env),
                            path.c_str(), static_cast<const void*>(options),
                            &session));
  const Object own_session = f.Own(session, kReleaseSession);
  PD_RETURN_IF_ERROR(f.Call(kCreateCpuMemory, 0, 0, &memory));
  const Object own_memory = f.Own(memory, kReleaseMemory);

  std::vector<Object> owned;
  std::vector<const char*> in_names, out_names;
  std::vector<const void*> in;
  for (const auto& [name, array] : feeds) {
    PD_ASSIGN_OR_RETURN(Object value, f.Tensor(array, memory));
    in_names.push_back(name.c_str());
    in.push_back(value.get());
    owned.push_back(std::move(value));
  }
  for (const std::string& name : outputs) out_names.push_back(name.c_str());
  std::vector<void*> out(outputs.size(), nullptr);
  PD_RETURN_IF_ERROR(f.Call(kRun, session, static_cast<const void*>(nullptr),
                            in_names.data(), in.data(), in.size(),
                            out_names.data(), out.size(), out.data()));
  for (void* value : out) owned.push_back(f.Own(value, kReleaseValue));
  NamedArrays answers;
  for (size_t i = 0; i < outputs.size(); ++i) {
    PD_ASSIGN_OR_RETURN(answers[outputs[i]], f.Read(out[i]));
  }
  return answers;
}

}  // namespace pd
