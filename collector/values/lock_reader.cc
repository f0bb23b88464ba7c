// SPDX-License-Identifier: Apache-2.0
#include "collector/values/lock_reader.h"

#include <algorithm>
#include <string_view>

#include "collector/model/questions.h"
#include "collector/program/syntax/with_items.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/contexts.h"
#include "collector/stacks/python/value_layout.h"
#include "collector/values/from_syntax.h"
#include "collector/values/running_frames.h"

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

constexpr std::size_t kMostLocks = 256;        // locks of a process
constexpr int kMostContexts = 3;               // contexts around contexts
constexpr std::uint64_t kMostTaken = 1 << 20;  // times that a thread takes a lock it holds

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

/// An expression that a `with` enters.
struct Entered {
  Node expression;
  bool is_body = false;  // the frame is in its suite: it was entered
};

/// What the `with` statements around a node enter, in its own function; the outermost first.
std::vector<Entered> entered_around(Node here) {
  std::vector<Entered> out;
  for (Node outer = here; outer && !outer.is(NodeKind::kFunction); outer = outer.parent()) {
    if (!outer.is(NodeKind::kWith) || program::is_async(outer)) {
      continue;
    }
    std::vector<Entered> items;
    for (const Node expression : program::entered_by(outer)) {
      items.push_back({.expression = expression, .is_body = outer != here});
    }
    out.insert(out.begin(), items.begin(), items.end());
  }
  return out;
}

/// The first `yield` of a function's body; a null node if it has none.
Node yield_in(Node node) {
  if (node.is(NodeKind::kYield)) {
    return node;
  }
  for (const Node child : node.children()) {
    const Node found = child.is(NodeKind::kFunction) ? Node() : yield_in(child);
    if (found) {
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
  for (const stacks::PythonThreadState& state : visit_.python.thread_states()) {
    for (const stacks::ThreadStack& thread : visit_.stacks.threads) {
      if (thread.inner_tid == state.inner_tid) {
        threads_.emplace(state.ident, thread.tid);
      }
    }
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
  // `lock.acquire(); return self`: any statement of the line.
  for (std::size_t i = statement + 1;
       i-- > 0 && index->statements()[i].line == index->statements()[statement].line;) {
    if (const Node taken = acquired_in(index->statements()[i].node)) {
      add(tid, frame, taken);
    }
  }
  const auto around = entered_around(here);
  auto contexts = stacks::entered_contexts(visit_.python.objects(), frame.raw);
  const auto bodies = static_cast<std::size_t>(
      std::count_if(around.begin(), around.end(), [](const Entered& one) { return one.is_body; }));
  contexts.resize(contexts.size() < bodies ? 0 : bodies);
  contexts.resize(around.size(), 0);
  if (around.size() == bodies + 1) {
    contexts.back() = being_entered(tid, frame);
  }
  stacks::Scope scope(visit_.python.objects(), frame.raw);
  Names names{.scope = &scope};
  for (std::size_t i = 0; i < around.size(); ++i) {
    // A name that stands for a different object: it was assigned since, or the order is not known.
    const Value value = evaluator_.evaluate(expression_of(around[i].expression), names);
    const bool other = contexts[i] != 0 && value.kind == Value::Kind::kObject &&
                       value.address != 0 && value.address != contexts[i];
    add(tid, frame, around[i].expression, other ? 0 : contexts[i]);
  }
}

/// The object whose `__enter__` the frame runs; 0 if it does not.
RemoteAddress LockReader::being_entered(pid_t tid, const stacks::PythonFrame& frame) {
  for (const stacks::PythonVisit::Thread& thread : visit_.threads) {
    for (std::size_t i = 1; thread.tid == tid && i < thread.frames.size(); ++i) {
      const stacks::PythonFrame& inner = thread.frames[i - 1];
      if (&thread.frames[i] == &frame && inner.frame.function.ends_with("__enter__")) {
        const auto locals = stacks::Scope(visit_.python.objects(), inner.raw).locals();
        return locals.empty() ? 0 : locals.front().second;
      }
    }
  }
  return 0;
}

/// `__enter__` acquires it; the generator of a contextmanager acquires it before its `yield`, or
/// yields inside a `with` of it.
RemoteAddress LockReader::taken_by(const Entry& entry, int depth) {
  const program::SourceIndex* index = files_.index(visit_.stacks.pid, entry.file);
  const Node function = index == nullptr || !model::is_user_file(entry.file)
                            ? Node()
                            : function_at(index->root(), entry.first_line, entry.name);
  const Node body = function.is(NodeKind::kFunction) ? function.field(Field::kBody) : Node();
  const Node yield = yield_in(body);
  Node taken;
  for (const Node statement : body.children()) {
    taken =
        !taken && !(yield && statement.begin() > yield.begin()) ? acquired_in(statement) : taken;
  }
  std::vector<Node> all;
  for (const Entered& one : yield ? entered_around(yield) : std::vector<Entered>{}) {
    all.insert(all.begin(), one.expression);
  }
  if (taken) {
    all.push_back(taken);
  }
  stacks::Scope scope = entry.scope;
  for (const Node one : all) {
    Names names{.scope = &scope, .bound = entry.bound};
    if (const RemoteAddress lock = lock_of(one, names, depth + 1)) {
      return lock;
    }
  }
  Names names{.scope = &scope, .bound = entry.bound};
  return yield || !all.empty() ? 0 : taken_below(body, names, depth);
}

RemoteAddress LockReader::taken_below(Node body, Names& names, int depth) {
  if (depth >= kMostContexts) {
    return 0;
  }
  for (const Node call : program::calls_within(body)) {
    const auto called = evaluator_.enter(expression_of(call), names,
                                         [](std::size_t, Value argument) { return argument; });
    if (const RemoteAddress lock = called ? taken_by(*called, depth + 1) : 0) {
      return lock;
    }
  }
  return 0;
}

RemoteAddress LockReader::lock_of(Node entered, Names& names, int depth) {
  stacks::PythonObjects& objects = visit_.python.objects();
  const Expression expression = expression_of(entered);
  const Value value = evaluator_.evaluate(expression, names);
  const RemoteAddress lock = lock_in(evaluator_, objects, value);
  if (lock != 0 || depth >= kMostContexts) {
    return lock;
  }
  const auto as_it_is = [](std::size_t, Value argument) { return argument; };
  if (value.kind != Value::Kind::kObject) {  // `with self.locked():`
    const auto called = evaluator_.enter(expression, names, as_it_is);
    return called ? taken_by(*called, depth) : 0;
  }
  return lock_of_object(value, depth);
}

RemoteAddress LockReader::lock_of_object(const Value& value, int depth) {
  constexpr std::string_view kIt = "it";
  Names of_it;
  of_it.bound.emplace(kIt, value);
  const Expression it{.kind = Expression::Kind::kName, .text = std::string(kIt)};
  const Expression method{.kind = Expression::Kind::kAttribute, .text = "__enter__", .parts = {it}};
  const auto entry = evaluator_.enter({.kind = Expression::Kind::kCall, .parts = {method}}, of_it,
                                      [](std::size_t, Value argument) { return argument; });
  return entry ? taken_by(*entry, depth) : 0;
}

std::vector<RemoteAddress> LockReader::locks_of(RemoteAddress context, int depth) {
  stacks::PythonObjects& objects = visit_.python.objects();
  const Value value = evaluator_.load(context);
  if (const RemoteAddress lock = lock_in(evaluator_, objects, value)) {
    return {lock};
  }
  std::vector<RemoteAddress> out;
  if (depth < kMostContexts &&
      evaluator_.attributes().derives_from(objects.type_of(context), "contextlib", "ExitStack")) {
    for (const RemoteAddress inner : stacks::contexts_of_stack(objects, context)) {
      const auto locks = locks_of(inner, depth + 1);
      out.insert(out.end(), locks.begin(), locks.end());
    }
  } else if (const RemoteAddress lock = lock_of_object(value, depth)) {
    out.push_back(lock);
  }
  return out;
}

void LockReader::add(pid_t tid, const stacks::PythonFrame& frame, Node expression,
                     RemoteAddress context) {
  const auto locks = context == 0 ? std::vector<RemoteAddress>() : locks_of(context, 0);
  for (const RemoteAddress lock : locks) {
    put(tid, frame, expression, lock);
  }
  if (locks.empty()) {
    stacks::Scope scope(visit_.python.objects(), frame.raw);
    Names names{.scope = &scope};
    put(tid, frame, expression, lock_of(expression, names, 0));
  }
}

void LockReader::put(pid_t tid, const stacks::PythonFrame& frame, Node expression,
                     RemoteAddress lock) {
  if (seen_.size() >= kMostLocks || lock == 0) {
    return;
  }
  const std::size_t number = numbers_.try_emplace(lock, numbers_.size() + 1).first->second;
  seen_.push_back({.tid = tid,
                   .file = frame.frame.file,
                   .line = frame.frame.line,
                   .expression = expression.one_line(),
                   .lock = number});
  add_owner(lock, seen_.back());
}

void LockReader::add_owner(RemoteAddress lock, SeenLock& seen) {
  namespace layout = stacks::value_layout;
  stacks::PythonObjects& objects = visit_.python.objects();
  if (objects.type_name(lock) != "_thread.RLock") {
    return;
  }
  stacks::RemoteMemory& memory = objects.memory();
  const auto owner = memory.get<std::uint64_t>(stacks::at(lock, layout::kRecursiveOwner));
  const auto count = memory.get<std::uint64_t>(stacks::at(lock, layout::kRecursiveCount));
  const auto held = memory.get<std::uint8_t>(stacks::at(lock, layout::kRecursiveLock));
  if (!owner || !count || !held || *count > kMostTaken) {
    return;
  }
  const bool from_0 = objects.layout().version >= stacks::kVersion314;
  const bool free = from_0 ? (*held & 1U) == 0 : *count == 0;
  const auto thread = threads_.find(*owner);
  if (free) {
    seen.owner = 0;
  } else if (thread != threads_.end()) {
    seen.owner = thread->second;
    seen.count = static_cast<std::int64_t>(*count) + (from_0 ? 1 : 0);
  }
}

}  // namespace ddpdoctor::values
