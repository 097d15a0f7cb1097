// SPDX-License-Identifier: Apache-2.0
// A network as the graph that viewers draw.
#ifndef PD_LIBCORE_REPORT_LOG_GRAPH_H_
#define PD_LIBCORE_REPORT_LOG_GRAPH_H_

#include "formats/log_record.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The test program: a node for each input, parameter and op; those of a layer
/// are called LAYER/OP, which viewers fold into one box.
LogGraph GraphOf(const TrainProgram& program);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_LOG_GRAPH_H_
