// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/state_exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// So many bytes of small variables travel together.
constexpr size_t kPackBytes = size_t{1} << 20;

// The value of another process, as `sent` bytes of it.
absl::Status SetBytes(const std::string& name, const Tensor& like,
                      const std::byte* sent, Scope* scope) {
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array value,
                      NewArray(like.dtype(), like.shape(), &bytes));
  if (value.size_bytes() > 0) std::memcpy(bytes, sent, value.size_bytes());
  return scope->Set(name, value);
}

}  // namespace

VariableBroadcast::VariableBroadcast(const OwnedVariables& variables,
                                     Scope* scope,
                                     const Communicator* processes)
    : scope_(scope), processes_(*processes) {
  for (int rank = 0; rank < processes_.size(); ++rank)
    for (const auto& [name, owner] : variables) {
      if (owner != rank) continue;
      Scope::Entry* entry = scope->Peek(name);  // Find would lend it for good
      PD_INVARIANT(entry != nullptr && entry->tensor.has_value());
      const size_t bytes = static_cast<size_t>(entry->tensor.size()) *
                           SizeOf(entry->tensor.dtype());
      if (packs_.empty() || packs_.back().owner != rank ||
          packs_.back().bytes + bytes > kPackBytes)
        packs_.push_back({rank, {}, 0});
      packs_.back().variables.push_back({name, entry, bytes});
      packs_.back().bytes += bytes;
    }
}

absl::Status VariableBroadcast::Run() {
  for (const Pack& pack : packs_) PD_RETURN_IF_ERROR(Send(pack));
  return absl::OkStatus();
}

absl::Status VariableBroadcast::Send(const Pack& pack) {
  const bool own = pack.owner == processes_.rank();
  const Tensor& first = pack.variables[0].entry->tensor;
  // A large one lies where it is sent from and received.
  if (pack.variables.size() == 1 && first.layout() == nullptr &&
      pack.variables[0].entry->device == nullptr)
    return processes_.Broadcast(pack.owner, first.raw(), pack.bytes);
  buffer_.resize(std::max(buffer_.size(), pack.bytes));
  const auto plain = [](const Variable& variable) {
    return variable.entry->tensor.layout() == nullptr &&
           variable.entry->device == nullptr;
  };
  std::byte* at = buffer_.data();
  for (const Variable& variable : pack.variables) {
    if (own && plain(variable)) {
      std::memcpy(at, variable.entry->tensor.raw(), variable.bytes);
    } else if (own) {
      PD_ASSIGN_OR_RETURN(const Array value, scope_->Get(variable.name));
      std::memcpy(at, value.bytes.get(), variable.bytes);
    }
    at += variable.bytes;
  }
  PD_RETURN_IF_ERROR(
      processes_.Broadcast(pack.owner, buffer_.data(), pack.bytes));
  if (own) return absl::OkStatus();
  at = buffer_.data();
  for (const Variable& variable : pack.variables) {
    if (plain(variable))
      std::memcpy(variable.entry->tensor.raw(), at, variable.bytes);
    else
      PD_RETURN_IF_ERROR(
          SetBytes(variable.name, variable.entry->tensor, at, scope_));
    at += variable.bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedArrays> GatherAtFirst(const OwnedVariables& variables,
                                          const ProgramDesc& program,
                                          const Scope& scope,
                                          const Communicator& processes) {
  NamedArrays gathered;
  for (const auto& [name, owner] : variables) {
    if (owner == 0) continue;
    if (processes.rank() == owner) {
      PD_ASSIGN_OR_RETURN(const Array value, scope.Get(name));
      PD_RETURN_IF_ERROR(
          processes.Send(0, value.bytes.get(), value.size_bytes()));
    } else if (processes.rank() == 0) {
      const VarDesc* var = program.global().FindVar(name);
      PD_INVARIANT(var != nullptr);
      std::byte* bytes = nullptr;
      PD_ASSIGN_OR_RETURN(Array value,
                          NewArray(var->dtype, var->shape, &bytes));
      PD_RETURN_IF_ERROR(processes.Receive(owner, bytes, value.size_bytes()));
      gathered[name] = std::move(value);
    }
  }
  return gathered;
}

}  // namespace pd
