// SPDX-License-Identifier: Apache-2.0
#include "cli/input_formats.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "cli/input_file.h"
#include "collector/imports/capture/capture.h"
#include "collector/imports/clog.h"
#include "collector/imports/documents/json_text.h"
#include "collector/imports/flight_recorder/flight_recorder.h"
#include "collector/imports/inspector.h"
#include "collector/imports/logs/json_log.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/nccl_ras.h"
#include "collector/recording/recording.h"

namespace ddpdoctor::cli {

namespace {

bool is_recording(std::string_view head, std::string_view) {
  return recording::is_recording(head);
}

/// `{` and a key. Trainers print "{'loss': 1.8}", and a first line with a whole object and more
/// text below is a log: a document ends with its object.
bool is_json_object(std::string_view head, std::string_view) {
  const std::string_view text = base::trim(head.substr(0, 4096));
  if (!text.starts_with('{')) {
    return false;
  }
  const std::string_view inside = base::trim(text.substr(1));
  if (!inside.empty() && inside.front() != '"' && inside.front() != '}') {
    return false;
  }
  const std::size_t end = text.find('\n');
  const bool printed = end != std::string_view::npos && text.find("\"schema\"") > end &&
                       imports::is_json(base::trim(text.substr(0, end)));
  return !printed;
}

base::Result<model::JobModel> read_dumps(const std::vector<std::string>& paths,
                                         std::vector<base::Error>& failures) {
  return imports::read_flight_recorder(paths, read_file_into, failures);
}

// Specific formats first; those that check only the first character last.
constexpr InputFormat kFormats[] = {
    {.name = "recordings (.ddpd)",
     .recognises = is_recording,
     .read = recording::load,
     .read_all = nullptr},
    {.name = "NCCL RAS (JSON)",
     .recognises = imports::is_ras_json,
     .read = imports::read_ras_json,
     .read_all = nullptr},
    {.name = "error files of torchrun (JSON)",
     .recognises = imports::is_error_file,
     .read = imports::read_error_file,
     .read_all = nullptr},
    {.name = "torch's flight-recorder dumps",
     .recognises = imports::is_flight_recorder_dump,
     .read = nullptr,
     .read_all = read_dumps},
    {.name = "torchcomms' clog",
     .recognises = imports::is_clog,
     .read = imports::read_clog,
     .read_all = nullptr},
    {.name = "NCCL's Inspector (JSON lines)",
     .recognises = imports::is_inspector,
     .read = imports::read_inspector,
     .read_all = nullptr},
    {.name = "logs as JSON lines",
     .recognises = imports::is_json_log,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "ddpdoctor.capture/1 (JSON)",
     .recognises = is_json_object,
     .read = imports::read_capture,
     .read_all = nullptr},
    {.name = "py-spy dump --json",
     .recognises = imports::is_py_spy_json,
     .read = imports::read_py_spy_dump,
     .read_all = nullptr},
    {.name = "py-spy",
     .recognises = imports::is_py_spy,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "pystack",
     .recognises = imports::is_pystack,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "gdb", .recognises = imports::is_gdb, .read = imports::read_text, .read_all = nullptr},
    {.name = "lldb",
     .recognises = imports::is_lldb,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "sample",
     .recognises = imports::is_sample,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "eu-stack",
     .recognises = imports::is_eu_stack,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "faulthandler",
     .recognises = imports::is_faulthandler,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "austin",
     .recognises = imports::is_austin,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "stacks printed by the program",
     .recognises = imports::is_printed_stacks,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "NCCL RAS (text)",
     .recognises = imports::is_ras_text,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "process tables",
     .recognises = imports::is_process_table,
     .read = imports::read_text,
     .read_all = nullptr},
    {.name = "logs",
     .recognises = imports::is_log,
     .read = imports::read_text,
     .read_all = nullptr},
};

}  // namespace

std::span<const InputFormat> input_formats() {
  return kFormats;
}

const InputFormat* input_format(std::string_view head, std::string_view path) {
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const InputFormat& format) { return format.recognises(head, path); });
  return found == std::end(kFormats) ? nullptr : found;
}

const InputFormat* text_format(std::string_view part, std::string_view path) {
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const InputFormat& format) {
        return format.read == imports::read_text && format.recognises(part, path);
      });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string readable_formats() {
  std::string out;
  for (const InputFormat& format : kFormats) {
    out += out.empty() ? "" : ", ";
    out += format.name;
  }
  return out;
}

const InputFormat* format_of(std::string_view head, const std::string& path) {
  const InputFormat* format = head.empty() ? nullptr : input_format(head, path);
  if (format == nullptr && head.size() == kHead) {
    const auto tail = read_tail(path);
    format = tail ? text_format(*tail, path) : nullptr;
  }
  return format;
}

const InputFormat* plain_log(const std::string& head, const std::string& path) {
  const auto tail = head.size() == kHead ? read_tail(path) : base::Result<std::string>(head);
  const bool tells = imports::tells_of_trouble(head) || imports::is_terminal_copy(head) ||
                     (tail && imports::tells_of_trouble(*tail));
  return tells ? &input_formats().back() : nullptr;
}

bool may_be_output(std::string_view head, std::string_view path) {
  constexpr std::array<std::string_view, 4> kEndings = {".log", ".out", ".err", ".txt"};
  return imports::is_plain_text(head) &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [path](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace ddpdoctor::cli
