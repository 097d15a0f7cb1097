// SPDX-License-Identifier: Apache-2.0
// The agreement of a plug-in and the library.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_PLUGIN_ABI_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_PLUGIN_ABI_H_

/// Changes with every change of a type or function that both sides see. A
/// plug-in tells it, and the library refuses one of another number.
#define PD_PLUGIN_ABI 2

#define PD_PLUGIN_DECL __attribute__((visibility("default")))

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_PLUGIN_ABI_H_
