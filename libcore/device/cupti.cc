// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cupti.h"

#include <memory>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/dynamic_library.h"

namespace pd {
namespace {

absl::StatusOr<std::unique_ptr<Cupti>> Load() {
  PD_ASSIGN_OR_RETURN(
      const DynamicLibrary library,
      DynamicLibrary::Open(
          {"CUPTI",
           {"libcupti.so.13", "libcupti.so.12"},
           "FLAGS_cupti_dir",
           {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"}}));
  auto cupti = std::make_unique<Cupti>();
#define PD_BIND(member, parameters) \
  PD_RETURN_IF_ERROR(library.Bind("cupti" #member, &cupti->member));
  PD_CUPTI(PD_BIND)
#undef PD_BIND
  cupti->path = library.path();
  PD_RETURN_IF_ERROR(
      cupti->Check(cupti->GetVersion(&cupti->version), "cuptiGetVersion"));
  return cupti;
}

}  // namespace

absl::Status Cupti::Check(CuptiResult result, const char* what) const {
  if (result == kCuptiSuccess) return absl::OkStatus();
  const char* text = nullptr;
  if (GetResultString(result, &text) != kCuptiSuccess || text == nullptr)
    text = "an error that it does not know";
  return Unavailable("%s of CUPTI in '%s': %s (%d)", what, path, text, result);
}

absl::StatusOr<const Cupti*> LoadCupti() {
  static const auto* const kLibrary =
      new absl::StatusOr<std::unique_ptr<Cupti>>(Load());
  if (!kLibrary->ok()) return kLibrary->status();
  return kLibrary->value().get();
}

}  // namespace pd
