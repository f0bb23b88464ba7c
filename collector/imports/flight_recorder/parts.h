// SPDX-License-Identifier: Apache-2.0
// The content of one dump in a compact form, so that millions of entries fit into memory: repeated
// content is stored once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/imports/documents/plain_document.h"
#include "collector/model/collective.h"

namespace ddpdoctor::imports {

/// Identifies content that is equal on many ranks; 0 is none.
using Fingerprint = std::uint64_t;

Fingerprint fingerprint(std::string_view text, Fingerprint seed = 0);
Fingerprint fingerprint(std::uint64_t number, Fingerprint seed);

inline constexpr std::uint32_t kNoGroup = UINT32_MAX;

inline constexpr double kNanosecond = 1e-9;  // in seconds

/// One entry of a dump.
struct DumpedCall {
  std::int64_t sequence = 0;
  std::int64_t created_ns = 0;
  Fingerprint what = 0;     // key in Vocabulary::calls
  std::uint32_t group = 0;  // index in Dump::groups
  model::CallState state = model::CallState::kUnknown;
  bool point_to_point = false;

  [[nodiscard]] bool open() const {
    return !model::is_over(state);
  }
};

/// A process group as seen by one rank.
struct DumpedGroup {
  std::string name;
  std::string description;
  std::string backend;
  Fingerprint members = 0;  // key in Vocabulary::members
  std::string pair_of{};  // in dumps written by ddpdoctor: the group in which two ranks communicate
};

/// The dump of one rank.
struct Dump {
  std::string path;
  model::Rank rank = 0;
  std::string version;
  double written = 0;  // seconds since the epoch, 0 = unknown
  bool cut = false;
  bool disputed = false;     // two processes wrote dumps of this rank: neither is used
  std::size_t left_out = 0;  // number of incomplete entries
  std::vector<DumpedGroup> groups;
  std::vector<DumpedCall> calls;  // sorted by group, then by sequence
  std::int64_t newest_ns = 0;
};

/// The number of steps allowed for one document. A document may refer to one list a million times:
/// the cost of reading must be proportional to its size.
struct Budget {
  std::size_t left = 0;

  /// False if the budget is exhausted.
  bool spend(std::size_t steps) {
    left -= std::min(left, steps);
    return left > 0;
  }
};

/// Content shared by dumps. One per thread; joined at the end.
struct Vocabulary {
  /// A call without rank, group, sequence and time; its peer is a group rank.
  std::unordered_map<Fingerprint, model::CollectiveCall> calls;
  std::unordered_map<Fingerprint, std::shared_ptr<const std::vector<model::Rank>>> members;

  void join(Vocabulary other);
};

/// Converts documents to dumps; caches what it has decoded. Not thread-safe.
class DumpReader {
 public:
  explicit DumpReader(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Nothing if the document is not a dump; `problem` has the reason.
  std::optional<Dump> read(const PlainDocument& document, std::string& problem);

 private:
  struct Fields;
  struct Template {
    Fingerprint what = 0;
    bool point_to_point = false;
  };

  void read_groups(const PlainDocument& document, Dump& out);
  void read_entry(const PlainDocument& document, const PlainValue& entry, Dump& out);
  [[nodiscard]] Fields fields_of(const PlainDocument& document, const PlainValue& entry);
  /// Index of an entry's group in the dump; kNoGroup if it is unknown.
  std::uint32_t group_of(const PlainDocument& document, const PlainValue& group,
                         const PlainValue& id, Dump& out);
  Fingerprint members_of(const PlainDocument& document, const PlainValue& ranks);
  Template template_of(const PlainDocument& document, const Fields& fields);
  model::CollectiveCall call_of(const PlainDocument& document, const Fields& fields);
  Fingerprint frames_print(const PlainDocument& document, const PlainValue& frames);
  bool is_users(std::string_view file);

  Vocabulary& vocabulary_;
  std::unordered_map<Fingerprint, Template> templates_;   // by the exact content of the entry
  std::unordered_map<std::int64_t, Fingerprint> frames_;  // of this document, by container
  std::unordered_map<std::string, bool> users_;           // by file name
  std::vector<std::uint8_t> order_;  // positions of the fields in the previous entry
  std::vector<const char*> keys_;
  Budget budget_;
};

/// The rank in a file name: the number after its last "rank", else its last number.
std::optional<model::Rank> rank_in_name(std::string_view path);

}  // namespace ddpdoctor::imports
