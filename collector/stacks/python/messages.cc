// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/messages.h"

#include <span>
#include <vector>

#include <fmt/format.h>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/frames.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::size_t kMostLocalsOfMessage = 64;
constexpr std::size_t kMostMessages = 64;

bool holds_messages(PythonObjects& objects, RemoteAddress list) {
  const std::string type = list == 0 ? std::string() : objects.type_name(list);
  if (type != "list" && type != "tuple") {
    return false;
  }
  const std::vector<RemoteAddress> first = objects.elements(list, 1);
  return !first.empty() && objects.type_name(first.front()) == "P2POp";
}

/// "isend" or "irecv", for these two functions of torch.
std::string_view direction(PythonObjects& objects, RemoteAddress function) {
  const auto module = objects.module("torch.distributed.distributed_c10d");
  for (const std::string_view name : {"isend", "irecv"}) {
    if (module && function != 0 && objects.item(*module, name) == function) {
      return name;
    }
  }
  return "?";
}

std::string told(PythonObjects& objects, RemoteAddress list) {
  std::string out;
  for (const RemoteAddress message : objects.elements(list, kMostMessages)) {
    const auto peer = objects.attribute(message, "peer");
    const auto rank = peer ? objects.integer(*peer) : std::nullopt;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                       direction(objects, objects.attribute(message, "op").value_or(0)),
                       rank ? fmt::format("{}", *rank) : "?");
  }
  return out;
}

}  // namespace

std::string messages_in(PythonObjects& objects, const RawPythonFrame& frame) {
  const PythonLayout& layout = objects.layout();
  RemoteMemory& memory = objects.memory();
  const auto names = objects.elements(pointer(memory, at(frame.code, layout.code_local_names)),
                                      kMostLocalsOfMessage);
  std::vector<RemoteAddress> slots(names.size());
  if (slots.empty() || !memory.read(at(frame.address, layout.frame_locals),
                                    std::as_writable_bytes(std::span(slots)))) {
    return {};
  }
  RemoteAddress found = 0;
  for (const RemoteAddress slot : slots) {
    const RemoteAddress value = untagged(slot, layout.version);
    if (value == found || !holds_messages(objects, value)) {
      continue;
    }
    if (found != 0) {
      return {};  // unknown which of them it waits for
    }
    found = value;
  }
  return found == 0 ? std::string() : told(objects, found);
}

}  // namespace ddpdoctor::stacks
