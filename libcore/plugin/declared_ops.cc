// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/declared_ops.h"

#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/convert.h"

namespace pd {
namespace {

constexpr size_t kOrders = 3;
constexpr const char* kSuffixes[kOrders] = {"", "_grad", "_grad_grad"};
constexpr const char* kMacros[kOrders] = {"PD_BUILD_OP", "PD_BUILD_GRAD_OP",
                                          "PD_BUILD_DOUBLE_GRAD_OP"};

// An operator with its gradients.
struct Family {
  std::string file;
  std::unique_ptr<paddle::detail::OpDeclaration> declared[kOrders];
  bool checked = false;
};

// Static initialisers fill it, so it is made when it is first used, and never
// destroyed.
struct DeclaredTable {
  std::mutex mutex;
  std::string file;
  std::map<std::string, Family> families;
  std::map<std::string, std::unique_ptr<const CustomOp>, std::less<>> checked;
};
DeclaredTable& Declared() {
  static auto* const table = new DeclaredTable;
  return *table;
}

absl::StatusOr<paddle::detail::OpDeclaration*> Declare(int abi,
                                                       const char* name,
                                                       size_t order) {
  if (abi != PD_PLUGIN_ABI)
    return FailedPrecondition(
        "it was built with headers of ABI %d; this pdkit has %d: compile it "
        "anew",
        abi, PD_PLUGIN_ABI);
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto [at, fresh] = table.families.try_emplace(name);
  Family& family = at->second;
  if (order == 0 && !fresh)
    return AlreadyExists("op '%s' is declared already%s", name,
                         family.file.empty() || family.file == table.file
                             ? std::string()
                             : absl::StrCat(", by '", family.file, "'"));
  if (fresh) family.file = table.file;
  if (order >= kOrders ||
      (order > 0 && family.declared[order - 1] == nullptr)) {
    if (fresh) table.families.erase(at);
    return FailedPrecondition("%s(%s) stands before %s(%s)",
                              kMacros[order % kOrders], name,
                              kMacros[(order + kOrders - 1) % kOrders], name);
  }
  if (family.checked || family.declared[order] != nullptr)
    return AlreadyExists("%s(%s) stands twice", kMacros[order], name);
  family.declared[order] = std::make_unique<paddle::detail::OpDeclaration>();
  return family.declared[order].get();
}

absl::Status Check(const std::string& name, Family* family,
                   DeclaredTable* table) {
  const CustomOp* forward = nullptr;
  for (size_t order = 0; order < kOrders; ++order) {
    if (family->declared[order] == nullptr) break;
    const std::string type = absl::StrCat(name, kSuffixes[order]);
    auto op = CheckDeclaration(type, *family->declared[order], forward);
    if (!op.ok()) {
      CustomOp named;
      named.type = type;
      named.file = family->file;
      return Annotate(op.status(), named.Describe());
    }
    op->file = family->file;
    if (family->declared[order]->has_tensorrt)
      LogInfo("%s: there is no TensorRT here; its kernel is used",
              op->Describe());
    const auto [at, fresh] = table->checked.try_emplace(
        type, std::make_unique<const CustomOp>(*std::move(op)));
    if (!fresh)
      return AlreadyExists("op '%s' of '%s' is a gradient of '%s' too", type,
                           family->file, at->second->file);
    forward = at->second.get();
  }
  family->checked = true;
  return absl::OkStatus();
}

}  // namespace

void SetDeclaringFile(const std::string& file) {
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.file = file;
}

std::string DeclaringFile() {
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  return table.file;
}

absl::StatusOr<std::vector<std::string>> CheckNewDeclarations() {
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<std::string> names;
  for (auto& [name, family] : table.families) {
    if (family.checked) continue;
    PD_RETURN_IF_ERROR(Check(name, &family, &table));
    names.push_back(name);
  }
  return names;
}

std::vector<OpDef> CheckedOps() {
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<OpDef> defs;
  for (const auto& entry : table.families) {
    const std::string& name = entry.first;
    const auto& family = entry.second;
    if (!family.checked) continue;
    for (size_t order = 0; order < kOrders; ++order) {
      const auto find = [&](size_t at) -> const CustomOp* {
        if (at >= kOrders || family.declared[at] == nullptr) return nullptr;
        return table.checked.at(absl::StrCat(name, kSuffixes[at])).get();
      };
      if (find(order) != nullptr)
        defs.push_back(OpDefOf(*find(order), find(order + 1)));
    }
  }
  return defs;
}

const CustomOp* FindCustomOp(absl::string_view type) {
  DeclaredTable& table = Declared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto at = table.checked.find(std::string(type));
  return at == table.checked.end() ? nullptr : at->second.get();
}

}  // namespace pd

extern "C" paddle::detail::OpDeclaration* PD_PluginDeclare(int abi,
                                                           const char* name,
                                                           size_t order) {
  const auto declaration = pd::Declare(abi, name, order);
  if (!declaration.ok()) throw pd::ErrorOf(declaration.status());
  return *declaration;
}
