// SPDX-License-Identifier: Apache-2.0
// Reads frames. Up to 3.10 each frame is an object; since 3.11 frames are plain structures in
// chunks owned by the thread (or inside a generator); since 3.12 each entry into the evaluation
// loop adds a shim on the C stack.
#include "collector/stacks/python/frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/messages.h"
#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostFrames = 2000;
// Bytes up to and including the first local: 360 in 3.10.
constexpr std::size_t kLargestFrame = 520;
constexpr std::uint64_t kLargestLineTable = 1ULL << 20U;
constexpr std::size_t kMostLocals = 16;
constexpr std::size_t kMostLocalNames = 64;

constexpr RemoteAddress kReferenceTag = 3;  // 3.14+: low bits of a _PyStackRef

// Include/internal/pycore_code.h: co_localspluskinds.

RemoteAddress innermost_frame(RemoteMemory& memory, const PythonLayout& layout,
                              RemoteAddress thread_state) {
  if (layout.thread_frame >= 0) {
    return pointer(memory, at(thread_state, layout.thread_frame));
  }
  const RemoteAddress cframe = pointer(memory, at(thread_state, layout.thread_cframe));
  return cframe != 0 ? pointer(memory, at(cframe, layout.cframe_frame)) : 0;
}

/// Reads one frame at once; `previous` receives the caller's address.
bool read_frame(RemoteMemory& memory, const PythonLayout& layout, RemoteAddress address,
                RawPythonFrame& frame, RemoteAddress& previous) {
  std::array<std::byte, kLargestFrame> block{};
  if (!memory.read(address,
                   std::span(block).first(static_cast<std::size_t>(layout.frame_locals)))) {
    return false;
  }
  const auto word = [&block](std::int64_t offset) {
    RemoteAddress value = 0;
    std::memcpy(&value, block.data() + offset, sizeof value);
    return value;
  };
  frame.address = address;
  frame.code = untagged(word(layout.frame_code), layout.version);
  previous = word(layout.frame_previous);
  if (layout.version >= kVersion311) {
    frame.instruction = word(layout.frame_instruction);
  } else {
    std::int32_t last = 0;
    std::memcpy(&last, block.data() + layout.frame_instruction, sizeof last);
    frame.instruction = static_cast<std::uint64_t>(std::int64_t{last});
  }
  const auto byte = [&block](std::int64_t offset) {
    return std::to_integer<std::int32_t>(block[static_cast<std::size_t>(offset)]);
  };
  frame.entry = layout.frame_entry >= 0 ? byte(layout.frame_entry) != 0 : layout.frame_owner < 0;
  frame.shim = layout.frame_owner >= 0 && byte(layout.frame_owner) >= layout.owner_c_stack;
  return true;
}

/// Adds to "<FileBaton at 0x1>" the attribute that identifies it: the file it waits for, the name
/// of the thread or module lock, the child's pid.
void name_instance(PythonObjects& objects, RemoteAddress instance, std::string& text) {
  if (!text.starts_with('<') || !text.ends_with('>')) {
    return;
  }
  for (const std::string_view name :
       {"lock_file_path", "_lock_file", "_name", "name", "pid", "path"}) {
    const auto value = objects.attribute(instance, name);
    const bool plain = value && (objects.string(*value) || objects.integer(*value));
    if (plain) {
      text.insert(text.size() - 1, fmt::format(" {}={}", name, objects.repr(*value)));
      return;
    }
  }
}

/// A file (the end of its path) and its functions whose locals are shown, each between spaces;
/// empty = all.
struct WaitingPlace {
  std::string_view file;
  std::string_view functions;
};

constexpr auto kWaitingPlaces = std::to_array<WaitingPlace>({
    {.file = "torch/distributed/distributed_c10d.py", .functions = ""},
    {.file = "torch/distributed/rendezvous.py", .functions = ""},
    {.file = "torch/distributed/elastic/utils/store.py", .functions = ""},
    {.file = "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", .functions = ""},
    {.file = "torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py", .functions = ""},
    {.file = "torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", .functions = ""},
    {.file = "torch/nn/parallel/distributed.py",
     .functions = " __init__ forward _sync_module_states _sync_buffers _pre_forward join "},
    {.file = "torch/distributed/utils.py",
     .functions = " _sync_module_states _verify_param_shape_across_processes "},
    {.file = "torch/utils/data/dataloader.py",
     .functions = " _try_get_data _get_data _next_data _shutdown_workers "},
    {.file = "torch/utils/data/_utils/worker.py", .functions = " _worker_loop "},
    {.file = "torch/utils/file_baton.py", .functions = ""},
    {.file = "threading.py", .functions = " wait join acquire _wait_for_tstate_lock __enter__ "},
    {.file = "queue.py", .functions = " get put join "},
    {.file = "subprocess.py", .functions = " wait _wait _try_wait communicate _communicate "},
    {.file = "multiprocessing/popen_fork.py", .functions = ""},
    {.file = "multiprocessing/process.py", .functions = " join "},
    {.file = "multiprocessing/connection.py",
     .functions = " wait recv _recv _recv_bytes poll _poll send _send "},
    {.file = "multiprocessing/queues.py", .functions = " get put _feed "},
    {.file = "multiprocessing/synchronize.py", .functions = ""},
    {.file = "filelock/_api.py", .functions = ""},
    {.file = "filelock/_unix.py", .functions = ""},
    {.file = "filelock/_soft.py", .functions = ""},
    {.file = "filelock.py", .functions = " acquire _acquire "},
    {.file = "_filelock.py", .functions = " acquire _acquire "},
    {.file = "fasteners/process_lock.py", .functions = " acquire "},
    {.file = "portalocker/utils.py", .functions = " acquire "},
    {.file = "asyncio/base_events.py", .functions = " run_until_complete "},
    {.file = "<frozen importlib._bootstrap>", .functions = " acquire __enter__ "},
    {.file = "importlib/_bootstrap.py", .functions = " acquire __enter__ "},
});

/// A handle is waited for in the function with the list of messages, or in a helper of it.
constexpr std::size_t kNearAWait = 2;

/// Loops over data in user code and trainers, not those over torch's own parts.
bool loops_wanted(std::string_view file) {
  return file.find("/torch/") == std::string_view::npos && !file.starts_with("<frozen");
}

}  // namespace

RemoteAddress untagged(RemoteAddress reference, std::int32_t version) {
  return version >= kVersion314 ? reference & ~kReferenceTag : reference;
}

bool locals_wanted(std::string_view file, std::string_view function) {
  const std::string name = fmt::format(" {} ", function.substr(function.rfind('.') + 1));
  return std::ranges::any_of(kWaitingPlaces, [&](const WaitingPlace& place) {
    // "threading.py" must not match "my_threading.py".
    const bool whole =
        file.ends_with(place.file) &&
        (file.size() == place.file.size() || file[file.size() - place.file.size() - 1] == '/');
    return whole &&
           (place.functions.empty() || place.functions.find(name) != std::string_view::npos);
  });
}

std::optional<RawPythonFrame> read_python_frame(RemoteMemory& memory, const PythonLayout& layout,
                                                RemoteAddress address) {
  RawPythonFrame frame;
  RemoteAddress previous = 0;
  return read_frame(memory, layout, address, frame, previous) ? std::optional(frame) : std::nullopt;
}

RawPythonStack read_python_stack(RemoteMemory& memory, const PythonLayout& layout,
                                 RemoteAddress thread_state) {
  RawPythonStack stack;
  std::unordered_set<RemoteAddress> seen;
  RemoteAddress next = innermost_frame(memory, layout, thread_state);
  RemoteAddress loop = 0;
  if (layout.thread_cframe >= 0) {
    loop = pointer(memory, at(thread_state, layout.thread_cframe));
  }
  while (next != 0 && stack.size() < kMostFrames && seen.insert(next).second) {
    RawPythonFrame frame;
    if (!read_frame(memory, layout, next, frame, next)) {
      break;
    }
    if (frame.entry && loop != 0) {  // the n-th loop made the n-th entry
      frame.loop = loop;
      loop = pointer(memory, at(loop, layout.cframe_previous));
    }
    stack.push_back(frame);
  }
  return stack;
}

void FrameDecoder::expect_codes(const RawPythonStack& stack) {
  std::vector<RemoteAddress> fresh;
  for (const RawPythonFrame& one : stack) {
    if (!one.shim && !codes_.contains(one.code)) {
      fresh.push_back(one.code);
    }
  }
  objects_.expect(fresh);
  std::vector<RemoteAddress> parts;
  for (const RemoteAddress code : fresh) {
    for (const std::int64_t part :
         {layout_.code_qualname >= 0 ? layout_.code_qualname : layout_.code_name,
          layout_.code_filename, layout_.code_line_table}) {
      parts.push_back(pointer(memory_, at(code, part)));
    }
  }
  objects_.expect(parts);
}

void FrameDecoder::append_names(RemoteAddress tuple, bool cells, Code& code) {
  const auto names = objects_.elements(tuple, kMostLocalNames);
  objects_.expect(names);
  for (const RemoteAddress name : names) {
    code.local_names.push_back(base::printable(objects_.string(name, 64).value_or("?")));
    code.local_is_cell.push_back(cells);
  }
}

void FrameDecoder::read_local_names(RemoteAddress address, Code& code) {
  append_names(pointer(memory_, at(address, layout_.code_local_names)), false, code);
  if (layout_.code_local_kinds < 0) {  // ≤3.10: locals, then cells, then free variables
    append_names(pointer(memory_, at(address, layout_.code_cell_names)), true, code);
    append_names(pointer(memory_, at(address, layout_.code_free_names)), true, code);
    return;
  }
  const auto kinds =
      objects_.bytes(pointer(memory_, at(address, layout_.code_local_kinds)), kMostLocalNames)
          .value_or("");
  for (std::size_t i = 0; i < std::min(kinds.size(), code.local_names.size()); ++i) {
    code.local_is_cell[i] = (static_cast<unsigned char>(kinds[i]) & (kCellLocal | kFreeLocal)) != 0;
  }
}

const FrameDecoder::Code& FrameDecoder::code_at(RemoteAddress address) {
  const auto known = codes_.find(address);
  if (known != codes_.end()) {
    return known->second;
  }
  Code code;
  if (objects_.type_name(address) == "code") {
    const std::int64_t name =
        layout_.code_qualname >= 0 ? layout_.code_qualname : layout_.code_name;
    const auto function = objects_.string(pointer(memory_, at(address, name)), 512);
    const auto file = objects_.string(pointer(memory_, at(address, layout_.code_filename)));
    code.valid = function.has_value() && file.has_value();
    code.function = base::printable(function.value_or(""));
    code.file = base::printable(file.value_or(""));
    code.first_line = memory_.get<std::int32_t>(at(address, layout_.code_first_line)).value_or(0);
    if (layout_.code_first_traceable >= 0) {
      code.first_traceable =
          memory_.get<std::int32_t>(at(address, layout_.code_first_traceable)).value_or(0);
    }
    const auto table =
        objects_.bytes(pointer(memory_, at(address, layout_.code_line_table)), kLargestLineTable);
    const auto bytes =
        std::as_bytes(std::span(table ? std::string_view(*table) : std::string_view()));
    code.lines.assign(bytes.begin(), bytes.end());
    code.locals_wanted = code.valid && locals_wanted(code.file, code.function);
    if (code.locals_wanted) {
      read_local_names(address, code);
    }
  }
  return codes_.emplace(address, std::move(code)).first->second;
}

std::int64_t FrameDecoder::offset_in_code(const RawPythonFrame& frame) const {
  const auto instruction = static_cast<std::int64_t>(frame.instruction);
  if (layout_.version >= kVersion311) {
    return static_cast<std::int64_t>(frame.instruction - at(frame.code, layout_.code_bytes));
  }
  return layout_.version == kVersion310 && instruction >= 0 ? instruction * 2 : instruction;
}

SourceRange FrameDecoder::place(const Code& code, std::int64_t offset) const {
  if (layout_.version >= kVersion311) {
    return find_in_location_table(code.lines, code.first_line, offset);
  }
  if (layout_.version == kVersion310) {
    return find_in_line_table_310(code.lines, code.first_line, offset);
  }
  return find_in_lnotab(code.lines, code.first_line, offset);
}

std::vector<std::pair<std::string, std::string>> FrameDecoder::locals(const RawPythonFrame& frame,
                                                                      const Code& code) {
  std::vector<RemoteAddress> slots(code.local_names.size());
  if (!memory_.read(at(frame.address, layout_.frame_locals),
                    std::as_writable_bytes(std::span(slots)))) {
    return {};
  }
  for (RemoteAddress& slot : slots) {
    slot = untagged(slot, layout_.version);
  }
  objects_.expect(slots);
  std::vector<std::pair<std::string, std::string>> shown;
  for (std::size_t i = 0; i < slots.size() && shown.size() < kMostLocals; ++i) {
    RemoteAddress value = slots[i];
    // An argument that a closure uses is a plain value until its cell is created.
    if (code.local_is_cell[i] && value != 0 && objects_.type_name(value) == "cell") {
      value = pointer(memory_, at(value, layout_.cell_content));
    }
    if (value != 0) {
      std::string text = objects_.repr(value);
      if (code.local_names[i] == "self") {
        name_instance(objects_, value, text);
      }
      shown.emplace_back(code.local_names[i], std::move(text));
    }
  }
  return shown;
}

RemoteAddress FrameDecoder::local(const RawPythonFrame& frame, std::string_view name) {
  const Code& code = code_at(frame.code);
  const auto found = std::find(code.local_names.begin(), code.local_names.end(), name);
  if (found == code.local_names.end()) {
    return 0;
  }
  const auto slot = static_cast<RemoteAddress>(found - code.local_names.begin());
  const RemoteAddress value = untagged(
      pointer(memory_, at(frame.address, layout_.frame_locals) + 8 * slot), layout_.version);
  const bool in_cell =
      value != 0 && code.local_is_cell[slot] && objects_.type_name(value) == "cell";
  return in_cell ? pointer(memory_, at(value, layout_.cell_content)) : value;
}

std::optional<Frame> FrameDecoder::decode_code(RemoteAddress address, int lasti) {
  const Code& code = code_at(address);
  if (!code.valid) {
    return std::nullopt;
  }
  const SourceRange range = place(code, lasti);
  Frame frame;
  frame.language = Language::kPython;
  frame.function = code.function;
  frame.file = code.file;
  frame.line = range.line;
  frame.column = range.column;
  frame.end_line = range.end_line;
  frame.end_column = range.end_column;
  return frame;
}

std::vector<PythonFrame> FrameDecoder::decode(const RawPythonStack& stack) {
  expect_codes(stack);
  std::vector<PythonFrame> frames;
  frames.reserve(stack.size());
  for (const RawPythonFrame& raw : stack) {
    PythonFrame decoded{.raw = raw, .frame = {}};
    decoded.frame.language = Language::kPython;
    if (!raw.shim) {
      const Code& code = code_at(raw.code);
      const std::int64_t offset = offset_in_code(raw);
      // As in Python itself: a frame exists once it has reached its first traceable instruction.
      const bool begun =
          layout_.version < kVersion311 || offset >= std::int64_t{code.first_traceable} * 2;
      if (code.valid && !begun && !raw.entry) {
        continue;
      }
      const SourceRange range = place(code, offset);
      decoded.frame.function = code.valid ? code.function : "<unreadable frame>";
      decoded.frame.file = code.file;
      decoded.frame.line = range.line;
      decoded.frame.column = range.column;
      decoded.frame.end_line = range.end_line;
      decoded.frame.end_column = range.end_column;
      if (code.locals_wanted) {
        decoded.frame.locals = locals(raw, code);
      } else if (code.valid && frames.size() < kNearAWait && loops_wanted(code.file)) {
        if (std::string messages = messages_in(objects_, raw); !messages.empty()) {
          decoded.frame.locals.emplace_back(kMessages, std::move(messages));
        }
      }
      if (code.valid && loops_wanted(code.file)) {
        decoded.frame.loops = iterations_.loops_of(raw.address, raw.code);
        if (!decoded.frame.loops.empty() && draws_a_batch(frames)) {
          decoded.frame.loops.back().left.reset();
        }
      }
    }
    frames.push_back(std::move(decoded));
  }
  return frames;
}

}  // namespace ddpdoctor::stacks
