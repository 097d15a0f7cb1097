// SPDX-License-Identifier: Apache-2.0
// Command line flags of a program, as paddle/common/flags.h has them:
// PD_DEFINE_int32(name, 1, "help") defines FLAGS_name, and
// paddle::flags::ParseCommandLineFlags reads --name=2.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_FLAGS_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_FLAGS_H_

#include <cstdint>
#include <string>

#include "paddle_infer_declare.h"

namespace paddle {
namespace flags {

/// Takes the flags that are known out of the arguments: --name=value,
/// --name value, --name and --noname of a bool. After "--" none is looked for.
/// InvalidArgument, thrown, for a value that is none.
PD_INFER_DECL void ParseCommandLineFlags(int* pargc, char*** pargv);
inline void ParseCommandLineFlags(int* pargc, char*** pargv, bool /*remove*/) {
  ParseCommandLineFlags(pargc, pargv);
}
/// False for a flag that there is not and for a value that is none. Flags of
/// the library (FLAGS_check_nan_inf) can be set too.
PD_INFER_DECL bool SetFlagValue(const std::string& name,
                                const std::string& value);
PD_INFER_DECL bool FindFlag(const std::string& name);

/// Registers a flag of the program, whose value is `*value`.
class PD_INFER_DECL FlagRegisterer {
 public:
  FlagRegisterer(const char* name, const char* help, bool* value);
  FlagRegisterer(const char* name, const char* help, int32_t* value);
  FlagRegisterer(const char* name, const char* help, uint32_t* value);
  FlagRegisterer(const char* name, const char* help, int64_t* value);
  FlagRegisterer(const char* name, const char* help, uint64_t* value);
  FlagRegisterer(const char* name, const char* help, double* value);
  FlagRegisterer(const char* name, const char* help, std::string* value);
};

}  // namespace flags
}  // namespace paddle

#define PD_DEFINE_VARIABLE_OF(type, name, default_value, help)          \
  namespace paddle_flags {                                              \
  type FLAGS_##name = default_value;                                    \
  static ::paddle::flags::FlagRegisterer pd_flag_##name(#name, help,    \
                                                        &FLAGS_##name); \
  }                                                                     \
  using paddle_flags::FLAGS_##name
#define PD_DECLARE_VARIABLE_OF(type, name) \
  namespace paddle_flags {                 \
  extern type FLAGS_##name;                \
  }                                        \
  using paddle_flags::FLAGS_##name

#define PD_DEFINE_bool(name, value, help) \
  PD_DEFINE_VARIABLE_OF(bool, name, value, help)
#define PD_DEFINE_int32(name, value, help) \
  PD_DEFINE_VARIABLE_OF(int32_t, name, value, help)
#define PD_DEFINE_uint32(name, value, help) \
  PD_DEFINE_VARIABLE_OF(uint32_t, name, value, help)
#define PD_DEFINE_int64(name, value, help) \
  PD_DEFINE_VARIABLE_OF(int64_t, name, value, help)
#define PD_DEFINE_uint64(name, value, help) \
  PD_DEFINE_VARIABLE_OF(uint64_t, name, value, help)
#define PD_DEFINE_double(name, value, help) \
  PD_DEFINE_VARIABLE_OF(double, name, value, help)
#define PD_DEFINE_string(name, value, help) \
  PD_DEFINE_VARIABLE_OF(std::string, name, value, help)
#define PD_DECLARE_bool(name) PD_DECLARE_VARIABLE_OF(bool, name)
#define PD_DECLARE_int32(name) PD_DECLARE_VARIABLE_OF(int32_t, name)
#define PD_DECLARE_uint32(name) PD_DECLARE_VARIABLE_OF(uint32_t, name)
#define PD_DECLARE_int64(name) PD_DECLARE_VARIABLE_OF(int64_t, name)
#define PD_DECLARE_uint64(name) PD_DECLARE_VARIABLE_OF(uint64_t, name)
#define PD_DECLARE_double(name) PD_DECLARE_VARIABLE_OF(double, name)
#define PD_DECLARE_string(name) PD_DECLARE_VARIABLE_OF(std::string, name)

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_FLAGS_H_
