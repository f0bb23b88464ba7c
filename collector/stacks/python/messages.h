// SPDX-License-Identifier: Apache-2.0
// The messages that a function has handed to torch's batch_isend_irecv(): the handles that it then
// waits for know no rank, the P2POps they were made from do.
#pragma once

#include <string>
#include <string_view>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// The name under which `messages_in` is put among the locals of a frame.
inline constexpr std::string_view kMessages = "P2POp";

/// "isend 1, irecv 1" for the list of P2POps among the frame's locals: global ranks, in the order
/// of the list. Empty where there is none, or more than one.
std::string messages_in(PythonObjects& objects, const RawPythonFrame& frame);

}  // namespace ddpdoctor::stacks
