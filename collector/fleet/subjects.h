// SPDX-License-Identifier: Apache-2.0
// Under which subjects the nodes of a job and its collector talk: ddpdoctor.JOB.WORD.….
//   marks.NODE         node → all      how far its ranks are; the newest is kept
//   last.NODE.PART     node → all      its capture when its part of the job was over; kept
//   ask                collector → all  "SESSION": who looks at the job
//   to.NODE            collector → node "SESSION ping N", "SESSION go SECONDS"
//   answer.SESSION.NODE  node → collector  lines of nodes/messages.h
//   lead               collector → all  "ID elected|named", twice a second
//   verdict            collector → all  "hang": what was found, for nodes that end the job then
//   finding            collector → all  the newest finding as JSON; kept
//   done               collector → all  every capture of the end has arrived
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ddpdoctor::fleet {

inline constexpr std::string_view kRoot = "ddpdoctor";
/// The session name of the final capture, which no collector asked for.
inline constexpr std::string_view kLastSession = "last";

inline std::string subject(std::string_view job, std::string_view rest) {
  return fmt::format("{}.{}.{}", kRoot, job, rest);
}

/// The word at `index` of a subject, from 0; empty when there are fewer words.
std::string_view word_of(std::string_view subject, std::size_t index);

}  // namespace ddpdoctor::fleet
