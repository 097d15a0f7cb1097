// SPDX-License-Identifier: Apache-2.0
// A stage of a pipeline: the program of one process, as PaddlePaddle's pipeline
// optimizer writes it. A step cuts its batch into micro-batches. Ops of role
// LRSched run once before them and set the sums of gradients to 0; forward and
// backward ops run for each, and add to the sums; updates run once after them.
// Stages hand activations on by send_v2 and recv_v2.
#ifndef PD_LIBCORE_TRAIN_PIPELINE_STAGE_H_
#define PD_LIBCORE_TRAIN_PIPELINE_STAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A stage's program in three. A variable that goes from one to another is
/// persistable in all.
struct PipelineStage {
  ProgramDesc before, micro_batch, after;
};

/// The micro-batches that the gradient of the loss tells, which is one over
/// their number; 1 where the program is no stage of a pipeline, and 0 where it
/// is one that does not tell, as every stage but the last.
int64_t MicroBatchesOf(const ProgramDesc& program);

PipelineStage CutPipelineStage(const ProgramDesc& program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PIPELINE_STAGE_H_
