// SPDX-License-Identifier: Apache-2.0
// Converts one document to one dump. Entries repeat most of earlier ones: they are compared by
// fingerprints, and only new content is decoded.
#include <algorithm>
#include <array>

#include "collector/imports/flight_recorder/parts.h"
#include "collector/model/questions.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;

constexpr std::size_t kMostEntryFrames = 64;
constexpr std::size_t kMostShapes = 4096;
constexpr std::size_t kMostExtents = 64;
constexpr std::size_t kMostParts = 64;  // parts of a frame
constexpr std::size_t kMostSplits = 16'384;
constexpr std::size_t kMostFields = 256;
constexpr std::size_t kStepsForAll = 1'000'000;
constexpr std::size_t kStepsForEach = 8;  // steps per value of a document; a valid one needs two

enum Field : std::uint8_t {
  kGroup,
  kGroupId,
  kCollectiveSeq,
  kPeerSeq,
  kOldSeq,
  kRecordId,
  kName,
  kCreated,
  kInputs,
  kInputTypes,
  kOutputs,
  kOutputTypes,
  kInputSplits,
  kOutputSplits,
  kState,
  kStarted,
  kCompleted,
  kRetired,
  kIsPeer,
  kFrames,
  kFieldCount,
  kOther = kFieldCount
};

constexpr std::array<std::string_view, kFieldCount> kFieldNames = {"process_group",
                                                                   "pg_id",
                                                                   "collective_seq_id",
                                                                   "p2p_seq_id",
                                                                   "seq_id",
                                                                   "record_id",
                                                                   "profiling_name",
                                                                   "time_created_ns",
                                                                   "input_sizes",
                                                                   "input_dtypes",
                                                                   "output_sizes",
                                                                   "output_dtypes",
                                                                   "input_split_sizes",
                                                                   "output_split_sizes",
                                                                   "state",
                                                                   "time_discovered_started_ns",
                                                                   "time_discovered_completed_ns",
                                                                   "retired",
                                                                   "is_p2p",
                                                                   "frames"};

std::uint8_t field_of(std::string_view name) {
  if (name == "in_split_sizes" || name == "out_split_sizes") {
    return name.starts_with("in") ? kInputSplits : kOutputSplits;
  }
  const auto* const found = std::find(kFieldNames.begin(), kFieldNames.end(), name);
  return static_cast<std::uint8_t>(found - kFieldNames.begin());
}

/// The fingerprint of any value, to the depth of tensor sizes.
Fingerprint value_print(const PlainDocument& document, const PlainValue& value, Fingerprint seed,
                        Budget& budget, int depth = 3);

Fingerprint items_print(const PlainDocument& document, const PlainValue& value, Fingerprint seed,
                        Budget& budget, int depth) {
  const auto items = document.items(value);
  Fingerprint print = fingerprint(items.size(), seed);
  for (const PlainValue& item : items.first(std::min(items.size(), kMostShapes))) {
    if (!budget.spend(1)) {
      break;
    }
    print = value_print(document, item, print, budget, depth - 1);
  }
  return print;
}

// NOLINTNEXTLINE(misc-no-recursion): three levels
Fingerprint value_print(const PlainDocument& document, const PlainValue& value, Fingerprint seed,
                        Budget& budget, int depth) {
  if (value.is(Kind::kText)) {
    return fingerprint(value.as_text(), seed);
  }
  if (value.is(Kind::kWhole)) {
    return fingerprint(static_cast<std::uint64_t>(value.whole), seed);
  }
  if (value.is(Kind::kList) && depth > 0) {
    return items_print(document, value, seed, budget, depth);
  }
  return fingerprint(static_cast<std::uint64_t>(value.kind), seed);
}

std::vector<std::vector<std::int64_t>> shapes_of(const PlainDocument& document,
                                                 const PlainValue& value) {
  std::vector<std::vector<std::int64_t>> out;
  for (const PlainValue& shape : document.items(value)) {
    const auto items = document.items(shape);
    if (out.size() == kMostShapes || items.size() > kMostExtents) {
      break;
    }
    std::vector<std::int64_t> extents;
    for (const PlainValue& extent : items) {
      extents.push_back(extent.as_whole().value_or(0));
    }
    if (shape.is(Kind::kList)) {
      out.push_back(std::move(extents));
    }
  }
  return out;
}

/// Since 2.11: the number of elements sent to, and received from, each rank of the group.
std::optional<std::vector<std::int64_t>> splits_of(const PlainDocument& document,
                                                   const PlainValue& value) {
  const auto items = value.is(Kind::kList) ? document.items(value) : std::span<const PlainValue>();
  if (items.empty() || items.size() > kMostSplits) {
    return std::nullopt;
  }
  std::vector<std::int64_t> out;
  for (const PlainValue& item : items) {
    const auto number = item.as_whole();
    if (!number || *number < 0) {
      return std::nullopt;
    }
    out.push_back(*number);
  }
  return out;
}

std::vector<std::string> texts_of(const PlainDocument& document, const PlainValue& value) {
  std::vector<std::string> out;
  for (const PlainValue& text : document.items(value)) {
    if (text.is(Kind::kText) && out.size() < kMostShapes) {
      out.emplace_back(text.as_text());
    }
  }
  return out;
}

std::string_view text_of(const PlainDocument& document, const PlainValue& dict,
                         std::string_view key) {
  const PlainValue* value = document.find(dict, key);
  return value == nullptr ? std::string_view() : value->as_text();
}

int line_of(const PlainDocument& document, const PlainValue& frame) {
  const PlainValue* value = document.find(frame, "line");
  const auto line = value == nullptr ? std::nullopt : value->as_whole();
  return line && *line > 0 && *line < INT32_MAX ? static_cast<int>(*line) : 0;
}

}  // namespace

/// The fields of one entry that are read; missing ones stay None.
struct DumpReader::Fields {
  std::array<PlainValue, kFieldCount> values;

  const PlainValue& operator[](Field field) const {
    return values.at(field);
  }
  [[nodiscard]] std::int64_t whole(Field field) const {
    return (*this)[field].as_whole().value_or(0);
  }
};

// Entries have the same keys in the same order, and equal keys are usually the same text in memory.
DumpReader::Fields DumpReader::fields_of(const PlainDocument& document, const PlainValue& entry) {
  Fields fields;
  const auto items = document.items(entry);
  const std::size_t count = items.size() / 2;
  if (keys_.size() < count) {
    keys_.resize(count, nullptr);
    order_.resize(count, kOther);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const PlainValue& key = items[2 * i];
    if (!key.is(Kind::kText)) {
      continue;
    }
    if (key.text != keys_[i]) {
      keys_[i] = key.text;
      order_[i] = field_of(key.as_text());
    }
    if (order_[i] < kFieldCount) {
      fields.values.at(order_[i]) = items[2 * i + 1];
    }
  }
  return fields;
}

Fingerprint DumpReader::frames_print(const PlainDocument& document, const PlainValue& frames) {
  if (!frames.is(Kind::kList)) {
    return 0;
  }
  const auto [known, added] = frames_.try_emplace(frames.whole, 0);
  if (!added) {
    return known->second;
  }
  Fingerprint print = 1;
  std::size_t count = 0;
  for (const PlainValue& frame : document.items(frames)) {
    if (++count > kMostEntryFrames) {
      break;
    }
    const auto parts = document.items(frame);
    for (const PlainValue& part : parts.first(std::min(parts.size(), kMostParts))) {
      print = value_print(document, part, print, budget_, 0);
    }
  }
  known->second = print;
  return print;
}

bool DumpReader::is_users(std::string_view file) {
  const auto [known, added] = users_.try_emplace(std::string(file), false);
  if (added) {
    known->second = model::is_user_file(file);
  }
  return known->second;
}

model::CollectiveCall DumpReader::call_of(const PlainDocument& document, const Fields& fields) {
  stacks::FlightRecord record;
  record.point_to_point = fields[kIsPeer].as_flag();
  record.operation = fields[kName].as_text();
  record.input_shapes = shapes_of(document, fields[kInputs]);
  record.output_shapes = shapes_of(document, fields[kOutputs]);
  record.input_dtypes = texts_of(document, fields[kInputTypes]);
  record.output_dtypes = texts_of(document, fields[kOutputTypes]);
  const auto frames = document.items(fields[kFrames]);
  for (const PlainValue& frame : frames.first(std::min(frames.size(), kMostEntryFrames))) {
    if (document.items(frame).size() > kMostParts) {
      continue;
    }
    const std::string_view file = text_of(document, frame, "filename");
    if (is_users(file)) {
      record.stack.push_back({.file = std::string(file),
                              .line = line_of(document, frame),
                              .function = std::string(text_of(document, frame, "name"))});
    }
  }
  model::CollectiveCall call = model::call_of_record(record);
  call.splits = splits_of(document, fields[kInputSplits]);
  call.output_splits = splits_of(document, fields[kOutputSplits]);
  return call;
}

DumpReader::Template DumpReader::template_of(const PlainDocument& document, const Fields& fields) {
  Fingerprint said = fingerprint(fields[kName].as_text(), fields[kIsPeer].as_flag() ? 2 : 1);
  for (const Field field :
       {kInputs, kInputTypes, kOutputs, kOutputTypes, kInputSplits, kOutputSplits}) {
    said = value_print(document, fields[field], said, budget_);
  }
  said = fingerprint(frames_print(document, fields[kFrames]), said);
  const auto [known, added] = templates_.try_emplace(said);
  if (!added) {
    return known->second;
  }
  model::CollectiveCall call = call_of(document, fields);
  Fingerprint what = fingerprint(call.operation, call.point_to_point ? 2 : 1);
  for (const std::int64_t extent : call.shape.value_or(std::vector<std::int64_t>())) {
    what = fingerprint(static_cast<std::uint64_t>(extent), what);
  }
  for (const auto* splits : {&call.splits, &call.output_splits}) {
    for (const std::int64_t split : splits->value_or(std::vector<std::int64_t>())) {
      what = fingerprint(static_cast<std::uint64_t>(split), what);
    }
    what = fingerprint(splits->has_value() ? 1U : 0U, what);
  }
  for (const auto& number : {call.count, call.sent_elements, call.expected_elements}) {
    what = fingerprint(static_cast<std::uint64_t>(number.value_or(-1)), what);
  }
  what = fingerprint(call.dtype, what);
  what = fingerprint(static_cast<std::uint64_t>(call.peer.value_or(-1)), what);
  for (const model::CallSite& site : call.callers) {
    what = fingerprint(static_cast<std::uint64_t>(site.line), fingerprint(site.file, what));
  }
  known->second = {.what = what, .point_to_point = call.point_to_point};
  vocabulary_.calls.try_emplace(what, std::move(call));
  return known->second;
}

void DumpReader::read_entry(const PlainDocument& document, const PlainValue& entry, Dump& out) {
  const std::size_t size = document.items(entry).size();
  if (!entry.is(Kind::kDict) || size > 2 * kMostFields || !budget_.spend(size)) {
    ++out.left_out;
    return;
  }
  Fields fields = fields_of(document, entry);
  const std::string_view name = fields[kName].as_text();
  if (name.empty()) {
    ++out.left_out;
    return;
  }
  DumpedCall call;
  // gloo never reports "completed" but retires calls that have ended. NCCL's watchdog also retires
  // failures.
  const std::string_view state = fields[kState].as_text();
  const bool retired = fields[kRetired].as_flag() && !name.starts_with("nccl:");
  const bool over = state == "completed" || retired || fields.whole(kCompleted) > 0;
  if (over && name.find("all_to_all") != name.npos) {
    // Not needed for a mismatch. Of a million such calls with different sizes, none are stored.
    for (const Field field : {kInputs, kOutputs, kInputSplits, kOutputSplits}) {
      fields.values.at(field) = PlainValue{};
    }
  }
  const Template known = template_of(document, fields);
  call.what = known.what;
  call.point_to_point = known.point_to_point;
  call.sequence =
      fields[kCollectiveSeq].as_whole() ? fields.whole(kCollectiveSeq) : fields.whole(kOldSeq);
  if (call.point_to_point) {  // counted by each rank separately: keep the rank's own order of calls
    call.sequence = fields.whole(kRecordId) + 1;
  }
  call.created_ns = fields.whole(kCreated);
  if (over) {
    call.state = model::CallState::kCompleted;
  } else {
    call.state = state == "started" || fields.whole(kStarted) > 0 ? model::CallState::kStarted
                                                                  : model::CallState::kEnqueued;
  }
  call.group = group_of(document, fields[kGroup], fields[kGroupId], out);
  if (call.sequence <= 0 || call.group == kNoGroup) {
    ++out.left_out;
    return;
  }
  std::string& backend = out.groups[call.group].backend;
  if (backend.empty()) {
    backend = name.substr(0, std::min(name.find(':'), name.size()));
  }
  out.newest_ns = std::max(out.newest_ns, call.created_ns);
  out.calls.push_back(call);
}

std::optional<Dump> DumpReader::read(const PlainDocument& document, std::string& problem) {
  frames_.clear();
  budget_.left = kStepsForAll + kStepsForEach * document.values();
  std::fill(keys_.begin(), keys_.end(), nullptr);
  const PlainValue* entries = document.find(document.root, "entries");
  if (!document.root.is(Kind::kDict) && !document.root.is(Kind::kList)) {
    problem = "it does not contain a dict";
    return std::nullopt;
  }
  // In the oldest dumps the document itself is the list of entries.
  const PlainValue& list = document.root.is(Kind::kList) ? document.root
                           : entries != nullptr          ? *entries
                                                         : PlainValue{};
  if (!list.is(Kind::kList)) {
    problem = "it has no list \"entries\"";
    return std::nullopt;
  }
  Dump out;
  out.cut = document.cut;
  out.version = text_of(document, document.root, "version");
  read_groups(document, out);
  const auto items = document.items(list);
  out.calls.reserve(items.size());
  for (const PlainValue& entry : items) {
    read_entry(document, entry, out);
  }
  if (out.calls.empty() && !items.empty() && out.left_out == items.size() && !document.cut &&
      out.groups.empty()) {
    problem = "its entries are not calls";
    return std::nullopt;
  }
  std::stable_sort(out.calls.begin(), out.calls.end(),
                   [](const DumpedCall& a, const DumpedCall& b) {
                     return a.group != b.group                     ? a.group < b.group
                            : a.point_to_point != b.point_to_point ? !a.point_to_point
                                                                   : a.sequence < b.sequence;
                   });
  return out;
}

}  // namespace ddpdoctor::imports
