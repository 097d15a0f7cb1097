// SPDX-License-Identifier: Apache-2.0
// <paddle/phi/extension.h>: everything that the source of a kernel or a device
// in the C++ form includes.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_PHI_EXTENSION_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_PHI_EXTENSION_H_

#include "paddle_device_ext.h"
#include "paddle_extension.h"
#include "paddle_kernel_registry.h"

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_PHI_EXTENSION_H_
