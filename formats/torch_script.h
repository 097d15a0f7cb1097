// SPDX-License-Identifier: Apache-2.0
// Archives of PyTorch's torch.jit.save as plain structs: the tree of modules
// with their attributes, constants, and the source of their methods in
// TorchScript, a subset of Python. Nothing of it runs here.
#ifndef PD_FORMATS_TORCH_SCRIPT_H_
#define PD_FORMATS_TORCH_SCRIPT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pickle.h"
#include "libcore/base/file.h"

namespace pd {

/// An attribute: another object, or a value.
struct TorchScriptAttribute {
  int64_t object = -1;  ///< in TorchScript::objects; -1: `value`
  PickleValue value;
};

struct TorchScriptObject {
  std::string type;  ///< "__torch__.net.Net"
  std::map<std::string, TorchScriptAttribute> attributes;
};

struct TorchScript {
  /// The first is the network; one that lies in several places stands once.
  std::vector<TorchScriptObject> objects;
  std::vector<PickleValue> constants;  ///< CONSTANTS.c0, c1, ...
  /// Inputs that forward was traced with, in the order of its parameters; empty
  /// where it was not traced.
  std::vector<PickleValue> traced;
  /// By module: "__torch__.net" has the classes and functions of it.
  std::map<std::string, std::string> sources;
};

/// Whether the bytes are an archive of torch.jit.save: those of torch.save
/// begin alike, so the names of all entries are looked through.
bool IsTorchScript(absl::string_view bytes);

/// DataLoss when the archive is damaged, PermissionDenied for what is neither
/// a module nor a value, InvalidArgument for modules over 64 levels deep.
absl::StatusOr<TorchScript> ParseTorchScript(const FileBytes& file);

/// The parameters and buffers by the names of a state_dict: "conv1.weight".
NamedArrays TorchScriptWeights(const TorchScript& script);

}  // namespace pd

#endif  // PD_FORMATS_TORCH_SCRIPT_H_
