// SPDX-License-Identifier: Apache-2.0
// The names of the classes of data sets whose files hold numbers alone, by
// number, as the data sets' authors publish them.
#ifndef PD_LIBCORE_DATA_CLASS_LISTS_H_
#define PD_LIBCORE_DATA_CLASS_LISTS_H_

#include <string>
#include <vector>

namespace pd {

std::vector<std::string> FashionMnistClasses();
std::vector<std::string> Cifar10Classes();
/// The 100 fine labels.
std::vector<std::string> Cifar100Classes();
/// Pascal VOC's 20 kinds of objects behind "background".
std::vector<std::string> VocClasses();

}  // namespace pd

#endif  // PD_LIBCORE_DATA_CLASS_LISTS_H_
