// SPDX-License-Identifier: Apache-2.0
// How layers of a model or of a block call each other: by their names, by
// "LAYER:RESULT", and by "USE.LAYER" for the layers inside of a block's use.
// Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYER_NAMES_H_
#define PD_LIBCORE_NN_LAYER_NAMES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

class LayerNames {
 public:
  /// A layer or input of this list; a later one of a name takes its place.
  void Set(const std::string& name, LayerInput input) {
    own_[name] = std::move(input);
  }
  /// The input that Set gave this name; null where it gave none.
  const LayerInput* Own(const std::string& name) const;
  /// The same, or what "USE.LAYER" or "USE.LAYER:RESULT" names; null too where
  /// two layers are called so.
  const LayerInput* OwnOrInside(const std::string& name) const;
  /// Names that go behind all of Set's: what LayerResults::inner holds. One
  /// that comes twice means neither.
  void AddInner(const std::map<std::string, LayerInput>& inner);

  /// The layer or input that `who` ("layer 'fc'") reads by `name`.
  /// InvalidArgument with the nearest name where there is none.
  absl::StatusOr<LayerInput> Find(const std::string& name,
                                  const std::string& who) const;
  /// The same for who takes one tensor: neither a group nor an optional input
  /// that is left out.
  absl::StatusOr<LayerInput> FindTensor(const std::string& name,
                                        const std::string& who) const;

  /// All names but those in `hidden`, each behind `prefix`. The only layer of
  /// its kind that has no name of its own, "flatten_0", is "flatten", too.
  std::map<std::string, LayerInput> Shown(
      const std::string& prefix, const std::map<std::string, int>& kinds,
      const LayerNames& hidden) const;

 private:
  std::map<std::string, LayerInput> own_, inner_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYER_NAMES_H_
