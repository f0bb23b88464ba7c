// SPDX-License-Identifier: Apache-2.0
// Common parts of reading and writing a capture: names of enumerators, limits, and the two halves
// of each direction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "collector/imports/documents/json_cursor.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

inline constexpr std::string_view kCaptureSchema = "ddpdoctor.capture/1";

inline constexpr std::int64_t kMaxPid = INT32_MAX;
inline constexpr std::int64_t kMaxRank = model::kMaxWorldSize - 1;
inline constexpr std::int64_t kMaxLine = 100'000'000;
inline constexpr std::int64_t kMaxNumber = INT64_MAX;

inline constexpr std::array<std::pair<model::CallState, std::string_view>, 4> kCallStates = {{
    {model::CallState::kEnqueued, "enqueued"},
    {model::CallState::kStarted, "started"},
    {model::CallState::kCompleted, "completed"},
    {model::CallState::kFailed, "failed"},
}};

/// One entry of an observation's "processes": gives one process per rank that it names.
std::vector<model::Process> read_processes(const Cursor& in);

nlohmann::ordered_json write_process(const model::Process& process);

/// Adds the calls of "collectives"; counts calls without a known group or rank in the coverage.
void read_collectives(const Cursor& in, model::JobModel& out);

/// The text of a field; empty if there is none.
inline std::string text(const Cursor& in, std::string_view key) {
  const Cursor field = in[key];
  return field.text().value_or("");
}

std::optional<model::Rank> read_rank(const Cursor& in);
model::CallSite read_call_site(const Cursor& in);

}  // namespace ddpdoctor::imports
