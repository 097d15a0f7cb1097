// SPDX-License-Identifier: Apache-2.0
// Runs the model on raw elements and prints the results:
//
//   run FILE...       one file for each input, row-major, little endian
//
// An extent that the model leaves open, such as the batch, follows from the
// size of the file.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "libcore/bundle/c_folder/model.h"

namespace {

bool Check(pd_run_status status) {
  if (status == PD_RUN_OK) return true;
  std::fprintf(stderr, "run: error: %s\n", pd_run_error());
  return false;
}

size_t BytesOf(pd_run_dtype dtype) {
  if (dtype == PD_RUN_INT64) return 8;
  return dtype == PD_RUN_FLOAT32 || dtype == PD_RUN_INT32 ? 4 : 1;
}

bool ReadFile(const char* path, std::vector<char>* bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "run: error: cannot open '%s'\n", path);
    return false;
  }
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

// The first open extent takes what the file has elements for.
bool SetShape(pd_run_model* model, size_t i, size_t size) {
  pd_run_tensor x;
  if (!Check(pd_run_get(model, PD_RUN_INPUT, i, &x))) return false;
  int64_t* const end = x.dims + x.rank;
  int64_t* const open = std::find(x.dims, end, -1);
  if (open == end) return true;
  *open = 1;
  auto left = static_cast<int64_t>(size / BytesOf(x.dtype));
  for (const int64_t* dim = x.dims; dim != end; ++dim)
    left /= std::max<int64_t>(*dim, 1);
  *open = left;
  return Check(pd_run_set_shape(model, i, x.rank, x.dims));
}

bool Fill(pd_run_model* model, size_t i, const std::vector<char>& bytes) {
  pd_run_tensor x;
  if (!Check(pd_run_get(model, PD_RUN_INPUT, i, &x))) return false;
  if (x.bytes != bytes.size()) {
    std::fprintf(stderr, "run: error: input '%s' takes %zu bytes, not %zu\n",
                 x.name, x.bytes, bytes.size());
    return false;
  }
  std::memcpy(x.data, bytes.data(), bytes.size());
  return true;
}

void PrintElement(const pd_run_tensor& y, size_t i) {
  switch (y.dtype) {
    case PD_RUN_FLOAT32:
      std::printf("%.9g\n",
                  static_cast<double>(static_cast<const float*>(y.data)[i]));
      break;
    case PD_RUN_INT64:
      std::printf("%lld\n", static_cast<long long>(
                                static_cast<const int64_t*>(y.data)[i]));
      break;
    case PD_RUN_INT32:
      std::printf("%d\n",
                  static_cast<int>(static_cast<const int32_t*>(y.data)[i]));
      break;
    case PD_RUN_UINT8:
    case PD_RUN_BOOL:
      std::printf("%d\n",
                  static_cast<int>(static_cast<const uint8_t*>(y.data)[i]));
  }
}

void Print(const pd_run_tensor& y) {
  std::printf("# %s [", y.name);
  for (int d = 0; d < y.rank; ++d)
    std::printf(d == 0 ? "%lld" : ", %lld", static_cast<long long>(y.dims[d]));
  std::printf("]\n");
  for (size_t i = 0; i < y.bytes / BytesOf(y.dtype); ++i) PrintElement(y, i);
}

bool Run(pd_run_model* model, char** paths) {
  const size_t inputs = pd_run_count(model, PD_RUN_INPUT);
  std::vector<std::vector<char>> files(inputs);
  for (size_t i = 0; i < inputs; ++i)
    if (!ReadFile(paths[i], &files[i]) || !SetShape(model, i, files[i].size()))
      return false;
  for (size_t i = 0; i < inputs; ++i)
    if (!Fill(model, i, files[i])) return false;
  if (!Check(pd_run_run(model))) return false;
  for (size_t i = 0; i < pd_run_count(model, PD_RUN_OUTPUT); ++i) {
    pd_run_tensor y;
    if (!Check(pd_run_get(model, PD_RUN_OUTPUT, i, &y))) return false;
    Print(y);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  pd_run_model* model = nullptr;
  if (!Check(pd_model_open(nullptr, nullptr, &model))) return 3;
  const size_t inputs = pd_run_count(model, PD_RUN_INPUT);
  bool done = false;
  if (static_cast<size_t>(argc) == inputs + 1)
    done = Run(model, argv + 1);
  else
    std::fprintf(stderr, "usage: run FILE... (%zu, one for each input)\n",
                 inputs);
  pd_run_close(model);
  return done ? 0 : 2;
}
