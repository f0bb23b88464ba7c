// SPDX-License-Identifier: Apache-2.0
// Processes, threads and frames → ddpdoctor.capture/1.
#include <nlohmann/json.hpp>

#include "collector/imports/capture/parts.h"
#include "collector/model/questions.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::ordered_json;

void put_text(ordered_json& out, const char* key, const std::string& value) {
  if (!value.empty()) {
    out[key] = value;
  }
}

/// Zero means unknown; so do values that the reader would refuse, because memory of another process
/// may contain anything.
void put_number(ordered_json& out, const char* key, std::int64_t value, std::int64_t high) {
  if (value > 0 && value <= high) {
    out[key] = value;
  }
}

void put_letter(ordered_json& out, const char* key, char value) {
  if (value != '?' && value > ' ' && value < 0x7f) {
    out[key] = std::string(1, value);
  }
}

ordered_json write_loop(const model::Iteration& loop) {
  ordered_json out = ordered_json::object();
  put_text(out, "over", loop.over);
  for (const auto& [key, count] : {std::pair("done", loop.done), std::pair("left", loop.left),
                                   std::pair("index", loop.index)}) {
    if (count && *count >= 0 && *count <= kMaxNumber) {
      out[key] = *count;
    }
  }
  if (loop.loose) {
    out["loose"] = true;
  }
  if (!loop.items.empty()) {
    out["items"] = loop.items;
  }
  return out;
}

ordered_json write_frame(const model::Frame& frame) {
  const bool python = frame.language == model::Language::kPython;
  ordered_json out = {{"language", python ? "python" : "native"}};
  put_text(out, "function", frame.function);
  put_text(out, "file", frame.file);
  put_number(out, "line", frame.line, kMaxLine);
  put_number(out, "column", frame.column, kMaxLine);
  put_number(out, "end_line", frame.end_line, kMaxLine);
  put_number(out, "end_column", frame.end_column, kMaxLine);
  put_text(out, "module", frame.module);
  if (frame.address <= static_cast<std::uint64_t>(kMaxNumber)) {
    put_number(out, "address", static_cast<std::int64_t>(frame.address), kMaxNumber);
  }
  if (frame.inferred) {
    out["inferred"] = true;
  }
  for (const auto& [name, value] : frame.locals) {
    out["locals"].push_back(ordered_json::array({name, value}));
  }
  for (const model::Iteration& loop : frame.loops) {
    out["loops"].push_back(write_loop(loop));
  }
  return out;
}

ordered_json write_thread(const model::Thread& thread) {
  ordered_json out = ordered_json::object();
  put_number(out, "tid", thread.tid, kMaxPid);
  put_text(out, "name", thread.name);
  put_letter(out, "state", thread.state);
  put_text(out, "wchan", thread.wchan);
  if (thread.gil) {
    out["gil"] = *thread.gil;
  }
  if (thread.waits_on) {
    ordered_json waits = ordered_json::object();
    put_text(waits, "kind", thread.waits_on->kind);
    put_text(waits, "target", thread.waits_on->target);
    put_text(waits, "detail", thread.waits_on->detail);
    if (thread.waits_on->limit) {
      waits["limit"] = *thread.waits_on->limit;
    }
    out["waits_on"] = std::move(waits);
  }
  if (thread.run_count && *thread.run_count <= static_cast<std::uint64_t>(kMaxNumber)) {
    out["run_count"] = *thread.run_count;
  }
  put_text(out, "capture", thread.capture);
  out["frames"] = ordered_json::array();
  for (const model::Frame& frame : thread.frames) {
    out["frames"].push_back(write_frame(frame));
  }
  return out;
}

ordered_json write_exit(const model::Exit& exit) {
  ordered_json out = ordered_json::object();
  if (exit.status) {
    out["status"] = *exit.status;
  }
  if (exit.signal) {
    out["signal"] = *exit.signal;
  }
  return out;
}

}  // namespace

ordered_json write_process(const model::Process& process) {
  ordered_json out = ordered_json::object();
  put_text(out, "host", process.host);
  put_number(out, "pid", process.pid, kMaxPid);
  put_number(out, "ppid", process.ppid, kMaxPid);
  if (process.rank) {
    out["rank"] = *process.rank;
  }
  out["role"] = model::role_name(process.role);
  if (!process.command.empty()) {
    out["command"] = model::public_command(process.command);
  }
  put_text(out, "exe", process.exe);
  if (process.start_time) {
    out["start_time"] = *process.start_time;
  }
  put_letter(out, "state", process.state);
  put_text(out, "wchan", process.wchan);
  for (const auto& [name, value] : process.environment) {
    if (!model::is_secret(name)) {
      out["env"][name] = model::without_secrets(value);
    }
  }
  if (process.exit) {
    out["exit"] = write_exit(*process.exit);
  }
  put_text(out, "python_version", process.python_version);
  if (process.io_bytes) {
    out["io_bytes"] = *process.io_bytes;
  }
  if (process.cpu_seconds) {
    out["cpu_seconds"] = *process.cpu_seconds;
  }
  if (!process.problems.empty()) {
    out["problems"] = process.problems;
  }
  out["threads"] = ordered_json::array();
  for (const model::Thread& thread : process.threads) {
    out["threads"].push_back(write_thread(thread));
  }
  return out;
}

}  // namespace ddpdoctor::imports
