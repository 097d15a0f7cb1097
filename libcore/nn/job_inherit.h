// SPDX-License-Identifier: Apache-2.0
// Fields that the evaluation set inherits from the training set. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_JOB_INHERIT_H_
#define PD_LIBCORE_NN_JOB_INHERIT_H_

namespace pd {
namespace job {
class Data;  // libcore/nn/job_data.pb.h
}

/// Where data.eval is of the same kind of rows or texts as data.train, it takes
/// over each field that says how they are read and that it does not give
/// itself: columns, the look of lines, sizes; the padding of records too,
/// unless it has columns of its own. Boxes are written as in data.train,
/// whatever the kind. Files and batches are its own.
void InheritFields(job::Data* data);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_INHERIT_H_
