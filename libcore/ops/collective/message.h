// SPDX-License-Identifier: Apache-2.0
// Messages between two processes: what send_v2, recv_v2 and their kin put
// before the elements, so that processes that do not agree learn it.
#ifndef PD_LIBCORE_OPS_COLLECTIVE_MESSAGE_H_
#define PD_LIBCORE_OPS_COLLECTIVE_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/dist/communicator.h"
#include "libcore/ir/program_desc.h"
#include "libcore/tensor/tensor.h"

namespace pd {

constexpr size_t kMostMessageAxes = 9;

/// The beginning of a message.
struct MessageHeader {
  int64_t dtype = 0, axes = 0;
  int64_t extents[kMostMessageAxes] = {};
  /// Where the sender's device hands the elements to the receiver's by its
  /// driver: how many parts the tensor has. 0: the elements follow.
  int64_t by_device = 0;
};

/// InvalidArgument for a shape of more axes than can be sent.
absl::StatusOr<MessageHeader> MessageHeaderOf(DType dtype, const Shape& shape);

/// Unless `out` is what the message holds: InvalidArgument with both.
absl::Status ExpectMessage(const MessageHeader& header, const Tensor& out);

/// Reads the beginning of a message whose elements follow on the host.
/// Unimplemented where the sender's device has them.
absl::StatusOr<MessageHeader> ReceiveHeader(const Communicator& ring, int peer);

/// The part of a tensor that an op moves: `id` of `num` equal ones.
struct MessagePart {
  size_t id = 0, num = 1;
  size_t bytes(const Tensor& tensor) const { return tensor.bytes() / num; }
  size_t begin(const Tensor& tensor) const { return id * bytes(tensor); }
};

/// By the attributes of partial_send and partial_recv; all of it for others.
/// InvalidArgument unless `tensor`, of `slot`, can be cut so.
absl::StatusOr<MessagePart> MessagePartOf(const OpDesc& op, const char* slot,
                                          const Tensor& tensor);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COLLECTIVE_MESSAGE_H_
