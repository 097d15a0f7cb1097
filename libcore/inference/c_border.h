// SPDX-License-Identifier: Apache-2.0
// The border of the C API: no exception crosses it, an error is a line in the
// log, and arrays go out as its structs.
#ifndef PD_LIBCORE_INFERENCE_C_BORDER_H_
#define PD_LIBCORE_INFERENCE_C_BORDER_H_

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/inference/api/paddle_inference_api.h"
#include "libcore/inference/api/pd_inference_api.h"

struct PD_Predictor {
  std::shared_ptr<paddle_infer::Predictor> predictor;
};

struct PD_Tensor {
  std::unique_ptr<paddle_infer::Tensor> tensor;
};

namespace pd {
namespace inference {

/// The result of `work(*object)`; `otherwise` for a null object and an error.
template <typename Object, typename Work, typename Result>
Result OrElse(const char* call, Object* object, Result otherwise,
              const Work& work) {
  if (object == nullptr) {
    LogError("%s: InvalidArgumentError: a null pointer is given", call);
    return otherwise;
  }
  try {
    return work(*object);
  } catch (const std::exception& error) {
    LogError("%s: %s", call, error.what());
  } catch (...) {
    LogError("%s: an unknown exception", call);
  }
  return otherwise;
}

/// The same for work without a result.
template <typename Object, typename Work>
void Do(const char* call, Object* object, const Work& work) {
  OrElse(call, object, 0, [&](Object& one) {
    work(one);
    return 0;
  });
}

/// The text; throws EnforceNotMet for null.
std::string Text(const char* text);
std::vector<std::string> Texts(size_t count, const char** texts);

/// A predictor of the config behind a handle, which is spent; throws.
std::shared_ptr<paddle_infer::Predictor> Spend(PD_Config* handle);

/// PD_DATA_UNK for a type without a code in C.
PD_DataType CTypeOf(paddle_infer::DataType type);

/// Copies that the caller destroys.
PD_Cstr* NewCstr(const std::string& text);
PD_OneDimArrayCstr* NewArrayOf(const std::vector<std::string>& texts);
template <typename Struct, typename T>
Struct* NewArrayOf(const std::vector<T>& values) {
  auto array = std::make_unique<Struct>();
  array->size = values.size();
  array->data = values.empty() ? nullptr : new T[values.size()];
  if (!values.empty())
    std::memcpy(array->data, values.data(), values.size() * sizeof(T));
  return array.release();
}

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_C_BORDER_H_
