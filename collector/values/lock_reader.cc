// SPDX-License-Identifier: Apache-2.0
#include "collector/values/lock_reader.h"

#include "collector/values/from_syntax.h"
#include "collector/values/running_frames.h"

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

constexpr std::size_t kMostLocks = 256;  // locks of a process

/// `X` of `X.acquire()` in a statement; a null node if there is none.
Node acquired_in(Node node) {
  const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
  if (callee.is(NodeKind::kAttribute) && callee.field(Field::kAttribute).text() == "acquire") {
    return callee.field(Field::kObject);
  }
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kBlock) || child.is(NodeKind::kFunction)) {
      continue;
    }
    if (const Node found = acquired_in(child)) {
      return found;
    }
  }
  return {};
}

/// The address of a threading.Lock or RLock; for a Condition, that of its lock.
RemoteAddress lock_in(Evaluator& evaluator, stacks::PythonObjects& objects, const Value& value) {
  if (value.kind != Value::Kind::kObject || value.address == 0) {
    return 0;
  }
  RemoteAddress lock = value.address;
  if (evaluator.attributes().derives_from(objects.type_of(lock), "threading", "Condition")) {
    lock = objects.attribute(lock, "_lock").value_or(0);
  }
  const std::string type = lock == 0 ? std::string() : objects.type_name(lock);
  return type == "_thread.lock" || type == "_thread.RLock" ? lock : 0;
}

}  // namespace

std::vector<SeenLock> LockReader::read() {
  if (visit_.threads.size() < 2) {
    return {};
  }
  each_running(visit_,
               [this](pid_t tid, const stacks::PythonFrame& frame) { read_frame(tid, frame); });
  return std::move(seen_);
}

void LockReader::read_frame(pid_t tid, const stacks::PythonFrame& frame) {
  const program::SourceIndex* index = files_.index(visit_.stacks.pid, frame.frame.file);
  const std::size_t statement =
      index == nullptr ? program::kNone : index->statement_at(frame.frame.line);
  if (statement == program::kNone) {
    return;
  }
  const Node here = index->statements()[statement].node;
  if (const Node taken = acquired_in(here)) {
    add(tid, frame, taken);
  }
  for (Node outer = here; outer && !outer.is(NodeKind::kFunction); outer = outer.parent()) {
    if (!outer.is(NodeKind::kWith)) {
      continue;
    }
    for (const Node item : outer.first_child().children()) {
      Node entered = item.field(Field::kValue);
      entered = entered.is(NodeKind::kAsPattern) ? entered.first_child() : entered;
      if (entered) {
        add(tid, frame, entered);
      }
    }
  }
}

void LockReader::add(pid_t tid, const stacks::PythonFrame& frame, Node expression) {
  if (seen_.size() >= kMostLocks) {
    return;
  }
  stacks::PythonObjects& objects = visit_.python.objects();
  stacks::Scope scope(objects, frame.raw);
  const RemoteAddress lock =
      lock_in(evaluator_, objects, evaluator_.evaluate(expression_of(expression), scope));
  if (lock != 0) {
    const std::size_t number = numbers_.try_emplace(lock, numbers_.size() + 1).first->second;
    seen_.push_back({.tid = tid,
                     .file = frame.frame.file,
                     .line = frame.frame.line,
                     .expression = expression.one_line(),
                     .lock = number});
  }
}

}  // namespace ddpdoctor::values
