// SPDX-License-Identifier: Apache-2.0
// The texts of the zoo's files; the build makes the table. Internal to the zoo.
#ifndef PD_LIBCORE_NN_ZOO_ZOO_FILES_H_
#define PD_LIBCORE_NN_ZOO_ZOO_FILES_H_

#include <vector>

namespace pd {

struct ZooText {
  const char* name;  ///< "resnet.pbtxt"
  const char* text;
};

const std::vector<ZooText>& ZooFiles();

}  // namespace pd

#endif  // PD_LIBCORE_NN_ZOO_ZOO_FILES_H_
