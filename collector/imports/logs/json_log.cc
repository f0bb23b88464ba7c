// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/json_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/imports/documents/json_text.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::json;
using Names = std::span<const std::string_view>;

constexpr std::size_t kLongestObject = std::size_t{1} << 20U;
constexpr std::size_t kMostRecords = 2'000'000;
constexpr std::size_t kLongestJsonName = 63;  // length of a container's name

constexpr std::array<std::string_view, 7> kTexts = {"log",         "line", "message", "msg",
                                                    "textPayload", "body", "MESSAGE"};
constexpr std::array<std::string_view, 5> kTraces = {"exc_info", "exception", "traceback",
                                                     "stack_trace", "stack"};
constexpr std::array<std::string_view, 6> kTimes = {"time",       "timestamp", "ts",
                                                    "@timestamp", "asctime",   "receiveTimestamp"};
constexpr std::array<std::string_view, 4> kRanks = {"rank", "global_rank", "RANK", "process_rank"};
constexpr std::array<std::string_view, 7> kPods = {
    "pod_name", "pod", "k8s_pod_name", "logStreamName", "container_name", "hostname", "host"};
constexpr std::array<std::string_view, 8> kInside = {
    "kubernetes", "labels", "stream", "fields", "resource", "extra", "jsonPayload", "record"};

const json* child(const json& object, std::string_view name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

/// A field of the object, or of one of the nested objects in which collectors put fields.
const json* field(const json& object, Names names, bool (json::*is)() const noexcept) {
  for (const std::string_view name : names) {
    if (const json* value = child(object, name); value != nullptr && (value->*is)()) {
      return value;
    }
  }
  for (const std::string_view room : kInside) {
    const json* inner = child(object, room);
    const json* deeper = inner == nullptr ? nullptr : child(*inner, "labels");
    for (const json* one : {inner, deeper}) {
      for (const std::string_view name : names) {
        const json* value = one == nullptr ? nullptr : child(*one, name);
        if (value != nullptr && (value->*is)()) {
          return value;
        }
      }
    }
  }
  return nullptr;
}

std::string text_of(const json& object, Names names) {
  const json* value = field(object, names, &json::is_string);
  return value == nullptr ? std::string() : value->get<std::string>();
}

/// "2026-11-20T12:34:56": seconds, milliseconds, … since the epoch, or the text as written.
std::string time_of(const json& object) {
  if (std::string written = text_of(object, kTimes); !written.empty()) {
    const bool date = written.size() >= 19 && written.size() <= 40 && written[4] == '-';
    return date ? written : std::string();
  }
  const json* value = field(object, kTimes, &json::is_number);
  double seconds = value == nullptr ? 0 : value->get<double>();
  while (seconds > 1e11) {
    seconds /= 1000;
  }
  const auto whole = static_cast<std::time_t>(std::isfinite(seconds) ? seconds : 0);
  std::tm parts{};
  if (whole <= 0 || ::gmtime_r(&whole, &parts) == nullptr) {
    return {};
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

struct Record {
  std::string text{};
  std::string time{};
  std::string pod{};
  std::optional<int> rank{};
  bool whole = true;  // false: the container's next record continues this line
};

std::optional<int> rank_of(const json& object) {
  const json* value = field(object, kRanks, &json::is_number_unsigned);
  const auto rank = value == nullptr ? model::kMaxWorldSize : value->get<std::uint64_t>();
  return rank < static_cast<std::uint64_t>(model::kMaxWorldSize)
             ? std::optional(static_cast<int>(rank))
             : std::nullopt;
}

/// A name in a form that is read as a container's label.
std::string container(std::string name) {
  name = name.substr(0, kLongestJsonName);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '-');
  return name;
}

std::optional<Record> record_of(const json& object) {
  const json* text = field(object, kTexts, &json::is_string);
  if (!object.is_object() || text == nullptr) {
    return std::nullopt;
  }
  Record out{.text = text->get<std::string>(),
             .time = time_of(object),
             .pod = container(text_of(object, kPods)),
             .rank = rank_of(object)};
  out.whole = child(object, "log") != text || out.text.ends_with('\n');
  const std::string trace = text_of(object, kTraces);
  if (trace.find('\n') != trace.npos && out.text.find(trace) == out.text.npos) {
    out.text += (out.text.ends_with('\n') ? "" : "\n") + trace;
  }
  return out;
}

/// {"stream": {…}, "values": [["1700000000000000000", "a line"], …]} of Loki's API.
void add_loki_stream(const json& stream, std::vector<Record>& out) {
  const json* values = child(stream, "values");
  for (const json& value : values != nullptr && values->is_array() ? *values : json::array()) {
    if (value.is_array() && value.size() >= 2 && value[1].is_string() &&
        out.size() < kMostRecords) {
      out.push_back({.text = value[1].get<std::string>(),
                     .time = {},
                     .pod = container(text_of(stream, kPods)),
                     .rank = rank_of(stream)});
    }
  }
}

/// The records of a document; empty if it is not a log.
std::vector<Record> records_of(const json& document) {
  std::vector<Record> out;
  const json* list = &document;
  for (const std::string_view name : {"data", "result"}) {
    const json* inner = child(*list, name);
    list = inner != nullptr ? inner : list;
  }
  if (const json* events = child(document, "events")) {
    list = events;
  }
  for (const json& one : list->is_array() ? *list : json::array()) {
    if (child(one, "values") != nullptr) {
      add_loki_stream(one, out);
    } else if (auto record = record_of(one); record && out.size() < kMostRecords) {
      out.push_back(std::move(*record));
    } else {
      return {};
    }
  }
  return out;
}

/// The records of a file with one object per line; other lines are unchanged.
std::vector<Record> records_in_lines(std::string_view text) {
  std::vector<Record> out;
  std::size_t objects = 0;
  std::size_t all = 0;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view bare = base::trim(line);
    if (bare.empty() || out.size() >= kMostRecords) {
      continue;
    }
    ++all;
    auto object = bare.front() == '{' && bare.back() == '}' && bare.size() <= kLongestObject
                      ? parse_json(bare, "line")
                      : base::Result<json>(base::failure("no object"));
    auto record = object ? record_of(*object) : std::nullopt;
    objects += record ? 1 : 0;
    out.push_back(record ? std::move(*record) : Record{.text = std::string(line)});
  }
  return objects > 0 && objects * 10 >= all * 9 ? std::move(out) : std::vector<Record>();
}

std::string text_of(const std::vector<Record>& records) {
  std::set<std::string> pods;
  for (const Record& record : records) {
    pods.insert(record.pod);
  }
  const bool several = pods.size() > 1;
  std::string out;
  bool whole = true;
  std::string_view last;
  for (const Record& record : records) {
    std::string_view text = record.text;
    text.remove_suffix(text.ends_with('\n') ? 1 : 0);
    const bool goes_on = !whole && last == record.pod;
    for (const std::string_view line : base::split(text, '\n')) {
      if (goes_on && line.data() == text.data()) {
        out.pop_back();
        out += line;
      } else {
        out += several && !record.pod.empty() ? record.pod + " | " : "";
        out += record.time.empty() ? "" : record.time + " ";
        out += record.rank ? fmt::format("[rank{}]: ", *record.rank) : "";
        out += line;
      }
      out += '\n';
    }
    whole = record.whole;
    last = record.pod;
  }
  return out;
}

bool names_a_text(std::string_view head) {
  return std::any_of(kTexts.begin(), kTexts.end(), [head](std::string_view name) {
    return head.find(fmt::format("\"{}\"", name)) != head.npos;
  });
}

}  // namespace

bool is_json_log(std::string_view head, std::string_view) {
  const std::string_view text = base::trim(head);
  if (text.starts_with('[')) {
    const std::string_view rest = base::trim(text.substr(1));
    return rest.starts_with('{') && names_a_text(head) &&
           head.find("\"os_thread_id\"") == head.npos;
  }
  if (!text.starts_with('{') || !(names_a_text(head) || head.find("\"values\"") != head.npos)) {
    return false;
  }
  if (head.find("\"resultType\"") != head.npos || text.starts_with("{\"events\"")) {
    return true;
  }
  const std::size_t end = text.find('\n');
  const auto object = parse_json(base::trim(text.substr(0, end)), "line");
  return object && record_of(*object).has_value();
}

std::optional<std::string> json_log_text(std::string_view text) {
  const std::string_view bare = base::trim(text);
  if (!bare.starts_with('{') && !bare.starts_with('[')) {
    return std::nullopt;
  }
  std::vector<Record> records = records_in_lines(text);
  if (records.empty()) {
    const bool list = bare.starts_with('[') && names_a_text(bare.substr(0, 65'536));
    const bool answer = bare.starts_with('{') && (bare.find("\"values\"") != bare.npos ||
                                                  bare.find("\"events\"") != bare.npos);
    if (const auto document = list || answer ? parse_json(bare, "log")
                                             : base::Result<json>(base::failure("no log"))) {
      records = records_of(*document);
    }
  }
  return records.empty() ? std::nullopt : std::optional(text_of(records));
}

}  // namespace ddpdoctor::imports
