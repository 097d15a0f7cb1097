// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_UPGRADE_MAN_H_
#define PD_CMD_UPGRADE_MAN_H_

#include <string>

namespace pd {

/// The page pd-upgrade(7): the names and operator types of PaddlePaddle 1.x
/// with those of 2.x, as `pd-convert --upgrade` takes them.
std::string UpgradePage();

}  // namespace pd

#endif  // PD_CMD_UPGRADE_MAN_H_
