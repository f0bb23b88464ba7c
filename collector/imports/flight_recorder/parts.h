// SPDX-License-Identifier: Apache-2.0
// What one dump says, in a form of which millions fit into memory: what repeats is said once.
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

/// Names what is equal on many ranks; 0 is nothing.
using Fingerprint = std::uint64_t;

Fingerprint fingerprint(std::string_view text, Fingerprint seed = 0);
Fingerprint fingerprint(std::uint64_t number, Fingerprint seed);

inline constexpr std::uint32_t kNoGroup = UINT32_MAX;

/// One entry of a dump.
struct DumpedCall {
  std::int64_t sequence = 0;
  std::int64_t created_ns = 0;
  Fingerprint what = 0;     // in Vocabulary::calls
  std::uint32_t group = 0;  // in Dump::groups
  model::CallState state = model::CallState::kUnknown;
  bool point_to_point = false;
};

/// A process group as one rank knows it.
struct DumpedGroup {
  std::string name;
  std::string description;
  std::string backend;
  Fingerprint members = 0;  // in Vocabulary::members
  std::string pair_of{};    // where we wrote the dump: the group in which two ranks exchange
};

/// The dump of one rank.
struct Dump {
  std::string path;
  model::Rank rank = 0;
  std::string version;
  double written = 0;  // seconds since the epoch, 0 = unknown
  bool cut = false;
  bool disputed = false;     // two processes wrote dumps of this rank: neither is used
  std::size_t left_out = 0;  // entries that say too little
  std::vector<DumpedGroup> groups;
  std::vector<DumpedCall> calls;  // by group, then by sequence
  std::int64_t newest_ns = 0;
};

/// Steps that one document is worth. A document may refer to one list a million times: reading it
/// must not cost more than its size suggests.
struct Budget {
  std::size_t left = 0;

  /// False when it is used up.
  bool spend(std::size_t steps) {
    left -= std::min(left, steps);
    return left > 0;
  }
};

/// What dumps have in common. One for each thread; joined in the end.
struct Vocabulary {
  /// A call without rank, group, sequence and time; its peer is a rank of its group.
  std::unordered_map<Fingerprint, model::CollectiveCall> calls;
  std::unordered_map<Fingerprint, std::shared_ptr<const std::vector<model::Rank>>> members;

  void join(Vocabulary other);
};

/// Turns documents into dumps; remembers what it has seen before. Not for two threads at once.
class DumpReader {
 public:
  explicit DumpReader(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Nothing when the document is no dump, with the reason in `problem`.
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
  /// The place of an entry's group in the dump; kNoGroup when it cannot be told.
  std::uint32_t group_of(const PlainDocument& document, const PlainValue& group,
                         const PlainValue& id, Dump& out);
  Fingerprint members_of(const PlainDocument& document, const PlainValue& ranks);
  Template template_of(const PlainDocument& document, const Fields& fields);
  model::CollectiveCall call_of(const PlainDocument& document, const Fields& fields);
  Fingerprint frames_print(const PlainDocument& document, const PlainValue& frames);
  bool is_users(std::string_view file);

  Vocabulary& vocabulary_;
  std::unordered_map<Fingerprint, Template> templates_;   // by what the entry says, word for word
  std::unordered_map<std::int64_t, Fingerprint> frames_;  // of this document, by container
  std::unordered_map<std::string, bool> users_;           // files
  std::vector<std::uint8_t> order_;                       // fields of the entry before this one
  std::vector<const char*> keys_;
  Budget budget_;
};

/// The rank that a file's name says: the number after its last "rank", else its last number.
std::optional<model::Rank> rank_in_name(std::string_view path);

}  // namespace ddpdoctor::imports
