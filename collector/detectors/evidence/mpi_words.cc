// SPDX-License-Identifier: Apache-2.0
// MPICH: "Abort(5) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) -
// process 3", "Abort(604654086) on node 2 (rank 2 in comm 0): Fatal error in internal_Send: Invalid
// rank, error stack:". OpenMPI: "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
// "with errorcode 5.";
// "*** An error occurred in MPI_Send", "*** reported by process [545325057,2]".
#include "collector/detectors/evidence/mpi_words.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "base/word.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostEnds = 1000;
constexpr std::string_view kAbort = "MPI_Abort";

/// The text after `mark`; nothing if it does not occur.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? std::nullopt : std::optional(text.substr(at + mark.size()));
}

std::optional<std::int64_t> number_at(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view mark) {
  const auto rest = after(text, mark);
  return rest ? number_at(*rest) : std::nullopt;
}

std::optional<model::Rank> rank_of(std::optional<std::int64_t> number) {
  return number && *number >= 0 && *number < model::kMaxWorldSize
             ? std::optional(static_cast<model::Rank>(*number))
             : std::nullopt;
}

/// MPI's public name of the function at the start of the text: "internal_Send" and "PMPI_Send" are
/// MPI_Send.
std::string function_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && base::is_word(text[length])) {
    ++length;
  }
  std::string_view name = text.substr(0, length);
  for (const std::string_view prefix : {"internal_", "PMPI_", "MPI_"}) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      return name.empty() ? std::string() : "MPI_" + std::string(name);
    }
  }
  return {};
}

std::optional<MpiEnd> of_mpich(std::string_view line) {
  const auto code = number_after(line, "Abort(");
  const auto where = code ? after(line, " (rank ") : std::nullopt;
  const auto rank = where ? rank_of(number_at(*where)) : std::nullopt;
  const auto what = rank ? after(*where, " in comm 0): ") : std::nullopt;  // 0 is the world
  if (!what) {
    return std::nullopt;
  }
  MpiEnd end{.rank = *rank, .line = std::string(base::trim(line))};
  if (what->starts_with("application called MPI_Abort")) {
    end.call = kAbort;
    end.code = code;
  } else if (const auto failed = after(*what, "Fatal error in ")) {
    end.call = function_at(*failed);
  }
  return end.call.empty() ? std::nullopt : std::optional(std::move(end));
}

std::optional<MpiEnd> abort_of_open_mpi(std::string_view line) {
  const auto where = after(line, "MPI_ABORT was invoked on rank ");
  const auto rank = where ? rank_of(number_at(*where)) : std::nullopt;
  if (!rank || !after(*where, " in communicator MPI_COMM_WORLD")) {
    return std::nullopt;
  }
  return MpiEnd{.rank = *rank, .call = std::string(kAbort), .line = std::string(base::trim(line))};
}

/// The line before the process's line names the function.
std::optional<MpiEnd> failure_of_open_mpi(std::string_view line, std::string_view before) {
  const auto process = after(line, "*** reported by process [");
  const auto rank = process ? rank_of(number_after(*process, ",")) : std::nullopt;
  const auto failed = rank ? after(before, "*** An error occurred in ") : std::nullopt;
  std::string call = failed ? function_at(*failed) : std::string();
  if (call.empty()) {
    return std::nullopt;
  }
  return MpiEnd{.rank = *rank, .call = std::move(call), .line = std::string(base::trim(before))};
}

}  // namespace

std::vector<MpiEnd> mpi_ends_told(const model::JobModel& job) {
  std::vector<MpiEnd> out;
  for (const model::Log& log : job.logs) {
    std::string_view before;
    for (const std::string_view line : base::split(log.text, '\n')) {
      auto end = of_mpich(line);
      end = end ? std::move(end) : abort_of_open_mpi(line);
      end = end ? std::move(end) : failure_of_open_mpi(line, before);
      const bool fresh = end && std::none_of(out.begin(), out.end(), [&end](const MpiEnd& one) {
                           return one.rank == end->rank;
                         });
      if (fresh && out.size() < kMostEnds) {
        out.push_back(std::move(*end));
      }
      before = line;
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
