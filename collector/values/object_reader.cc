// SPDX-License-Identifier: Apache-2.0
#include "collector/values/object_reader.h"

#include <utility>

#include "collector/program/libraries/methods.h"
#include "collector/values/from_syntax.h"
#include "collector/values/running_frames.h"

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

constexpr std::size_t kMostObjects = 96;  // of a process

}  // namespace

std::vector<CalledObject> ObjectReader::read() {
  each_running(visit_, [this](pid_t tid, const stacks::PythonFrame& frame) {
    if (!evaluator_.late()) {
      read_frame(tid, frame);
    }
  });
  return std::move(seen_);
}

/// "queue.Queue"; a built-in class has no module in its name.
std::string ObjectReader::class_of(RemoteAddress object) {
  stacks::PythonObjects& objects = visit_.python.objects();
  const std::string name = objects.type_name(object);
  if (name.find('.') != std::string::npos) {
    return name;
  }
  const RemoteAddress type = objects.type_of(object);
  const std::string module = evaluator_.attributes().module_of(type);
  return (module.empty() ? "builtins" : module) + "." + objects.class_name(type);
}

void ObjectReader::read_frame(pid_t tid, const stacks::PythonFrame& frame) {
  const program::SourceIndex* index = files_.index(visit_.stacks.pid, frame.frame.file);
  if (index == nullptr) {
    return;
  }
  stacks::Scope scope(visit_.python.objects(), frame.raw);
  for (const Node call : program::calls_within(index->function_at(frame.frame.line).node)) {
    const Node callee = program::without_parentheses(call.field(Field::kFunction));
    if (evaluator_.late() || seen_.size() >= kMostObjects) {
      return;
    }
    if (!callee.is(NodeKind::kAttribute) ||
        !program::is_listed(callee.field(Field::kAttribute).text())) {
      continue;
    }
    const Node object = callee.field(Field::kObject);
    const Value value = evaluator_.evaluate(expression_of(object), scope);
    const std::string qualified =
        value.kind == Value::Kind::kObject && value.address != 0 ? class_of(value.address) : "";
    if (program::class_made_by(qualified) == nullptr) {
      continue;
    }
    const std::size_t number =
        numbers_.try_emplace(value.address, numbers_.size() + 1).first->second;
    seen_.push_back({.tid = tid,
                     .file = frame.frame.file,
                     .line = call.line(),
                     .expression = object.one_line(),
                     .qualified = qualified,
                     .number = number});
  }
}

}  // namespace ddpdoctor::values
