// SPDX-License-Identifier: Apache-2.0
// The messages that a function passed to torch's batch_isend_irecv(): the handles that it waits for
// do not contain a rank, but the P2POps do.
#pragma once

#include <string>
#include <string_view>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// The name of the `messages_in` entry among the locals of a frame.
inline constexpr std::string_view kMessages = "P2POp";

/// "isend 1, irecv 1" for the list of P2POps among the frame's locals: global ranks in list order.
/// Empty if there is no such list, or more than one.
std::string messages_in(PythonObjects& objects, const RawPythonFrame& frame);

}  // namespace ddpdoctor::stacks
