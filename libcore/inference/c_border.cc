// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/c_border.h"

#include "libcore/base/error.h"
#include "libcore/inference/border.h"

namespace pd {
namespace inference {
namespace {

char* NewText(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

std::string Text(const char* text) {
  if (text == nullptr) Check(InvalidArgument("a string is a null pointer"));
  return text;
}

std::vector<std::string> Texts(size_t count, const char** texts) {
  if (count > 0 && texts == nullptr)
    Check(InvalidArgument("a list of strings is a null pointer"));
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i) all.push_back(Text(texts[i]));
  return all;
}

PD_DataType CTypeOf(paddle_infer::DataType type) {
  switch (type) {
    case paddle_infer::DataType::FLOAT32:
      return PD_DATA_FLOAT32;
    case paddle_infer::DataType::INT32:
      return PD_DATA_INT32;
    case paddle_infer::DataType::INT64:
      return PD_DATA_INT64;
    case paddle_infer::DataType::UINT8:
      return PD_DATA_UINT8;
    case paddle_infer::DataType::INT8:
      return PD_DATA_INT8;
    default:
      return PD_DATA_UNK;
  }
}

PD_Cstr* NewCstr(const std::string& text) {
  auto copy = std::make_unique<PD_Cstr>();
  copy->size = text.empty() ? 0 : text.size() + 1;
  copy->data = text.empty() ? nullptr : NewText(text);
  return copy.release();
}

PD_OneDimArrayCstr* NewArrayOf(const std::vector<std::string>& texts) {
  auto array = std::make_unique<PD_OneDimArrayCstr>();
  array->size = texts.size();
  array->data = texts.empty() ? nullptr : new char*[texts.size()];
  for (size_t i = 0; i < texts.size(); ++i) array->data[i] = NewText(texts[i]);
  return array.release();
}

}  // namespace inference
}  // namespace pd

extern "C" {

void PD_OneDimArrayInt32Destroy(PD_OneDimArrayInt32* array) {
  if (array == nullptr) return;
  delete[] array->data;
  delete array;
}

void PD_OneDimArrayInt64Destroy(PD_OneDimArrayInt64* array) {
  if (array == nullptr) return;
  delete[] array->data;
  delete array;
}

void PD_OneDimArraySizeDestroy(PD_OneDimArraySize* array) {
  if (array == nullptr) return;
  delete[] array->data;
  delete array;
}

void PD_OneDimArrayCstrDestroy(PD_OneDimArrayCstr* array) {
  if (array == nullptr) return;
  for (size_t i = 0; i < array->size; ++i) delete[] array->data[i];
  delete[] array->data;
  delete array;
}

void PD_TwoDimArraySizeDestroy(PD_TwoDimArraySize* array) {
  if (array == nullptr) return;
  for (size_t i = 0; i < array->size; ++i)
    PD_OneDimArraySizeDestroy(array->data[i]);
  delete[] array->data;
  delete array;
}

void PD_CstrDestroy(PD_Cstr* text) {
  if (text == nullptr) return;
  delete[] text->data;
  delete text;
}

void PD_IOInfoDestroy(PD_IOInfo* info) {
  if (info == nullptr) return;
  PD_CstrDestroy(info->name);
  PD_OneDimArrayInt64Destroy(info->shape);
  delete info;
}

void PD_IOInfosDestroy(PD_IOInfos* infos) {
  if (infos == nullptr) return;
  for (size_t i = 0; i < infos->size; ++i) PD_IOInfoDestroy(infos->io_info[i]);
  delete[] infos->io_info;
  delete infos;
}

}  // extern "C"
