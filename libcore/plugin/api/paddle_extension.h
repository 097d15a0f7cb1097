// SPDX-License-Identifier: Apache-2.0
// <paddle/extension.h>: everything that the source of an operator includes.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_EXTENSION_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_EXTENSION_H_

// Programs rely on these, which PaddlePaddle's header brings along.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>

#include "paddle_check.h"
#include "paddle_context_pool.h"
#include "paddle_dispatch.h"
#include "paddle_enforce.h"
#include "paddle_functions.h"
#include "paddle_host_tensor.h"
#include "paddle_op_meta_info.h"

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_EXTENSION_H_
