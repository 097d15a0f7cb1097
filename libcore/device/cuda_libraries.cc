// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cuda_libraries.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/dynamic_library.h"

namespace pd {
namespace {

struct Wanted {
  LibraryQuery query;
  const char* symbol;     // size_t (): its version
  size_t oldest, newest;  // major versions
};

absl::StatusOr<LibraryVersion> FindVersion(const Wanted& wanted,
                                           DynamicLibrary* opened = nullptr) {
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library,
                      DynamicLibrary::Open(wanted.query));
  size_t (*version)() = nullptr;
  PD_RETURN_IF_ERROR(library.Bind(wanted.symbol, &version));
  const size_t number = version();
  // Before version 9 cuDNN counted major versions in thousands.
  const size_t unit = number < 10000 ? 1000 : 10000;
  const size_t major = number / unit, rest = number % unit;
  const std::string text =
      absl::StrCat(major, ".", rest / 100, ".", rest % 100);
  if (major < wanted.oldest || major > wanted.newest)
    return Unavailable(
        "%s '%s' has version %s; expected %s", wanted.query.title,
        library.path(), text,
        wanted.oldest == wanted.newest
            ? absl::StrCat(wanted.oldest)
            : absl::StrCat(wanted.oldest, " to ", wanted.newest));
  if (opened != nullptr) *opened = library;
  return LibraryVersion{library.path(), text};
}

Wanted CublasLtWanted() {
  Wanted wanted{{}, "cublasLtGetVersion", 12, 13};
  wanted.query = {"cuBLASLt",
                  {"libcublasLt.so.13", "libcublasLt.so.12"},
                  "FLAGS_cuda_dir",
                  {"/usr/local/cuda/lib64"}};
  return wanted;
}

Wanted CudnnWanted() {
  Wanted wanted{{}, "cudnnGetVersion", 9, 9};
  wanted.query = {
      "cuDNN", {"libcudnn.so.9"}, "FLAGS_cudnn_dir", {"/usr/local/cuda/lib64"}};
  return wanted;
}

}  // namespace

absl::StatusOr<LibraryVersion> FindCublasLt() {
  return FindVersion(CublasLtWanted());
}

absl::StatusOr<DynamicLibrary> OpenCublasLt() {
  DynamicLibrary library;
  PD_RETURN_IF_ERROR(FindVersion(CublasLtWanted(), &library).status());
  return library;
}

absl::StatusOr<LibraryVersion> FindCudnn() {
  return FindVersion(CudnnWanted());
}

absl::StatusOr<DynamicLibrary> OpenCudnn() {
  DynamicLibrary library;
  PD_RETURN_IF_ERROR(FindVersion(CudnnWanted(), &library).status());
  return library;
}

}  // namespace pd
