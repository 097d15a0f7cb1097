// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/collective/message.h"

#include <algorithm>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"

namespace pd {

absl::StatusOr<MessageHeader> MessageHeaderOf(DType dtype, const Shape& shape) {
  MessageHeader header;
  if (shape.size() > kMostMessageAxes)
    return InvalidArgument("shape %s has %d axes; at most %d can be sent",
                           ToString(shape), shape.size(), kMostMessageAxes);
  header.dtype = static_cast<int64_t>(dtype);
  header.axes = static_cast<int64_t>(shape.size());
  std::copy(shape.begin(), shape.end(), header.extents);
  return header;
}

absl::Status ExpectMessage(const MessageHeader& header, const Tensor& out) {
  if (header.axes < 0 || header.axes > static_cast<int64_t>(kMostMessageAxes))
    return Internal("a message of %d axes has arrived", header.axes);
  const Shape shape(header.extents, header.extents + header.axes);
  if (shape == out.shape() && header.dtype == static_cast<int64_t>(out.dtype()))
    return absl::OkStatus();
  const auto dtype = DTypeFromCode(static_cast<int32_t>(header.dtype));
  return InvalidArgument("%s %s was sent; %s %s is expected",
                         dtype.has_value() ? Name(*dtype) : "no dtype",
                         ToString(shape), Name(out.dtype()),
                         ToString(out.shape()));
}

absl::StatusOr<MessageHeader> ReceiveHeader(const Communicator& ring,
                                            int peer) {
  MessageHeader header;
  PD_RETURN_IF_ERROR(ring.Receive(peer, &header, sizeof(header)));
  if (header.by_device != 0)
    return Unimplemented(
        "process %d sends by its device's driver, and process %d receives on "
        "the host; give all processes the same --device",
        peer, ring.rank());
  return header;
}

absl::StatusOr<MessagePart> MessagePartOf(const OpDesc& op, const char* slot,
                                          const Tensor& tensor) {
  if (op.FindAttr("num") == nullptr) return MessagePart{};
  const auto num = op.Attr<int32_t>("num"), id = op.Attr<int32_t>("id");
  if (num < 1 || id < 0 || id >= num)
    return InvalidArgument("id is %d of num %d", id, num);
  PD_RETURN_IF_ERROR(ExpectMultiple(slot, tensor.size(), num));
  return MessagePart{static_cast<size_t>(id), static_cast<size_t>(num)};
}

}  // namespace pd
