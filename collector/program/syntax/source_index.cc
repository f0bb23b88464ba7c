// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/source_index.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "collector/program/syntax/parameters.h"
#include "collector/program/syntax/tree.h"

namespace ddpdoctor::program {
namespace {

/// The suite of a header: its `body` or `consequence`.
Node suite_of(Node header) {
  if (const Node body = header.field(Field::kBody)) {
    return body;
  }
  if (const Node body = header.field(Field::kConsequence)) {
    return body;
  }
  for (const Node child : header.children()) {  // except and finally have no field name for it
    if (child.is(NodeKind::kBlock)) {
      return child;
    }
  }
  return {};
}

bool has_token(Node node, std::string_view word) {
  const auto children = node.all_children();
  return std::any_of(children.begin(), children.end(), [word](Node child) {
    return child.is(NodeKind::kToken) && child.text() == word;
  });
}

/// Walks the tree once. Recursion is bounded by the depth of a Tree.
class Collector {
 public:
  Collector(std::vector<Scope>& scopes, std::vector<Statement>& statements)
      : scopes_(scopes), statements_(statements) {}

  void module(Node root) {
    Scope scope;
    scope.name = scope.qualified = "<module>";
    scope.node = scope.body = root;
    scope.first_line = scope.header_line = 1;
    scope.last_line = root.last_line();
    scopes_.push_back(std::move(scope));
    suite(root, kNone, 0);
  }

 private:
  void suite(Node block, std::size_t parent, std::size_t scope) {
    for (Node child = block.first_child(); child; child = child.next_sibling()) {
      inside(child, parent, kNone, scope);
    }
  }

  void inside(Node node, std::size_t parent, std::size_t owner, std::size_t scope) {
    const NodeKind kind = node.kind();
    if (is_simple_statement(kind)) {
      if (node.text() == kUnknownName) {
        return;  // the placeholder of an unknown suite
      }
      add(node, parent, owner, scope);
      lambdas(node, scope);
    } else if (kind == NodeKind::kDecorated) {
      decorated(node, parent, scope);
    } else if (is_header(kind)) {
      header(node, parent, owner, scope, {});
    } else if (kind == NodeKind::kBlock) {
      suite(node, parent, scope);
    } else if (kind == NodeKind::kError) {
      add(node, parent, owner, scope);  // text that is not a statement still gets an entry
      suite(node, parent, scope);
    }
  }

  std::size_t add(Node node, std::size_t parent, std::size_t owner, std::size_t scope) {
    const std::size_t index = statements_.size();
    Statement statement;
    statement.node = node;
    statement.line = node.line();
    statement.last_line = node.last_line();
    statement.parent = parent;
    statement.owner = owner;
    statement.scope = scope;
    statement.end = index + 1;
    statements_.push_back(statement);
    return index;
  }

  void decorated(Node node, std::size_t parent, std::size_t scope) {
    std::vector<Node> decorators;
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      if (child.is(NodeKind::kDecorator)) {
        add(child, parent, kNone, scope);
        decorators.push_back(child.first_child());
      } else if (is_header(child.kind())) {
        header(child, parent, kNone, scope, decorators);
      }
    }
  }

  void header(Node node, std::size_t parent, std::size_t owner, std::size_t scope,
              const std::vector<Node>& decorators) {
    const std::size_t index = add(node, parent, owner, scope);
    const Node body = suite_of(node);
    const bool defines = node.is(NodeKind::kFunction) || node.is(NodeKind::kClass);
    const std::size_t inner = defines ? open(node, body, scope, decorators) : scope;
    statements_[index].last_line = last_line_of_header(node, body);
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      if (child == body || child.is(NodeKind::kBlock)) {
        suite(child, index, inner);
      } else if (is_clause(child.kind())) {
        header(child, child.is(NodeKind::kCase) ? index : parent, index, scope, {});
      } else {
        lambdas(child, scope);
      }
    }
    statements_[index].end = statements_.size();
  }

  /// The last line of the header; includes the suite if it is on the same line.
  static int last_line_of_header(Node node, Node body) {
    if (!body) {
      return node.line();
    }
    int last = node.line();
    for (const Node child : node.all_children()) {
      if (child.begin() >= body.begin()) {
        break;
      }
      if (!child.is(NodeKind::kComment)) {
        last = std::max(last, child.last_line());
      }
    }
    return last;
  }

  std::size_t open(Node node, Node body, std::size_t outer, const std::vector<Node>& decorators) {
    Scope scope;
    scope.kind = node.is(NodeKind::kClass) ? ScopeKind::kClass : ScopeKind::kFunction;
    scope.name = node.field(Field::kName).text();
    scope.node = node;
    scope.body = body;
    scope.header_line = node.line();
    scope.first_line = decorators.empty() ? node.line() : decorators.front().line();
    scope.last_line = std::max(node.last_line(), node.line());
    scope.decorators = decorators;
    scope.parameters = parameters_of(node.field(Field::kParameters));
    scope.is_async = has_token(node, "async");
    scope.is_generator = scope.kind == ScopeKind::kFunction && yields(body);
    return place(std::move(scope), outer);
  }

  std::size_t place(Scope scope, std::size_t outer) {
    const Scope& around = scopes_[outer];
    scope.outer = outer;
    scope.qualified = around.kind == ScopeKind::kModule ? scope.name
                      : around.kind == ScopeKind::kClass
                          ? around.qualified + "." + scope.name
                          : around.qualified + ".<locals>." + scope.name;
    scopes_.push_back(std::move(scope));
    return scopes_.size() - 1;
  }

  void lambdas(Node node, std::size_t outer) {
    std::size_t inside = outer;
    if (node.is(NodeKind::kLambda)) {
      Scope scope;
      scope.kind = ScopeKind::kLambda;
      scope.name = "<lambda>";
      scope.node = node;
      scope.body = node.field(Field::kBody);
      scope.first_line = scope.header_line = node.line();
      scope.last_line = node.last_line();
      scope.parameters = parameters_of(node.field(Field::kParameters));
      inside = place(std::move(scope), outer);
    }
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      lambdas(child, inside);
    }
  }

  std::vector<Scope>& scopes_;
  std::vector<Statement>& statements_;
};

}  // namespace

bool yields(Node body) {
  for (Node child = body.first_child(); child; child = child.next_sibling()) {
    const NodeKind kind = child.kind();
    const bool own = kind != NodeKind::kFunction && kind != NodeKind::kClass &&
                     kind != NodeKind::kLambda && kind != NodeKind::kGenerator;
    if (kind == NodeKind::kYield || (own && yields(child))) {
      return true;
    }
  }
  return false;
}

bool is_simple_statement(NodeKind kind) {
  return kind >= NodeKind::kExpressionStatement && kind <= NodeKind::kTypeAlias;
}

bool is_header(NodeKind kind) {
  return kind >= NodeKind::kIf && kind <= NodeKind::kClass;
}

bool is_clause(NodeKind kind) {
  return kind == NodeKind::kElif || kind == NodeKind::kElse || kind == NodeKind::kExcept ||
         kind == NodeKind::kFinally || kind == NodeKind::kCase;
}

namespace {

constexpr std::size_t kMostPieces = 5000;  // each piece is parsed separately

/// Shares the tree of an identical text: values/ and the model both read the files.
std::shared_ptr<const Tree> shared_tree(WholeText text) {
  static std::mutex mutex;
  static std::unordered_map<std::size_t, std::weak_ptr<const Tree>> known;
  const std::size_t hash = std::hash<std::string>()(text.buffer);
  const auto find = [&]() -> std::shared_ptr<const Tree> {
    const std::lock_guard lock(mutex);
    const auto at = known.find(hash);
    auto tree = at == known.end() ? nullptr : at->second.lock();
    const bool same = tree && tree->text().buffer == text.buffer && tree->text().rows == text.rows;
    return same ? tree : nullptr;
  };
  if (auto tree = find()) {
    return tree;
  }
  auto tree = std::make_shared<const Tree>(std::move(text));
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  known[hash] = tree;
  return tree;
}

/// In a text with gaps, lines that are not Python are replaced, so that they do not spoil the rest.
std::shared_ptr<const Tree> tree_of(const SourceText& text) {
  auto tree = shared_tree(whole_text(text));
  if (has_gaps(text) && text.size() <= kMostPieces && tree->has_errors()) {
    const auto reads = [](const std::string& piece) {
      return !Tree(WholeText{.buffer = piece, .rows = {}}).has_errors();
    };
    tree = std::make_shared<const Tree>(whole_text(text, reads));
  }
  return tree;
}

}  // namespace

SourceIndex::SourceIndex(const SourceText& text) : tree_(tree_of(text)) {
  Collector(scopes_, statements_).module(root());
}

Node SourceIndex::root() const {
  return tree_->root();
}

const Scope& SourceIndex::function_at(int line) const {
  const Scope* found = &scopes_.front();
  for (const Scope& scope : scopes_) {
    if (scope.first_line > line) {
      break;
    }
    if (scope.kind == ScopeKind::kFunction && line <= scope.last_line) {
      found = &scope;  // inner scopes come later
    }
  }
  return *found;
}

const Scope* SourceIndex::scope_of_frame(int line, std::string_view name) const {
  const Scope* found = nullptr;
  for (const Scope& scope : scopes_) {
    if (scope.first_line > line) {
      break;
    }
    const bool holds = scope.kind == ScopeKind::kModule || line <= scope.last_line;
    if (holds && (scope.name == name || scope.qualified == name)) {
      found = &scope;
    }
  }
  return found;
}

std::size_t SourceIndex::statement_at(int line) const {
  // Sorted by first line; several may share it (`if x: f()`, `a; b`): the last is innermost.
  const auto after =
      std::upper_bound(statements_.begin(), statements_.end(), line,
                       [](int wanted, const Statement& s) { return wanted < s.line; });
  const bool covers = after != statements_.begin() && line <= (after - 1)->last_line;
  return covers ? static_cast<std::size_t>(after - statements_.begin()) - 1 : kNone;
}

std::size_t SourceIndex::statement_of(Node node) const {
  const auto after = std::upper_bound(
      statements_.begin(), statements_.end(), node.id(),
      [](std::uint32_t wanted, const Statement& s) { return wanted < s.node.id(); });
  for (auto one = after; one != statements_.begin();) {
    --one;
    if (one->node.id() <= node.id() && node.id() < one->node.end_id()) {
      return static_cast<std::size_t>(one - statements_.begin());
    }
  }
  return kNone;
}

std::vector<std::size_t> SourceIndex::statements_of(const Scope& scope) const {
  const auto wanted = static_cast<std::size_t>(&scope - scopes_.data());
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    if (statements_[i].scope == wanted) {
      out.push_back(i);
    }
  }
  return out;
}

const SourceIndex& index_of(const SourceText& text) {
  return text.once<SourceIndex>([&text] { return SourceIndex(text); });
}

void is_not_python(const SourceText& text) {
  text.once<SourceIndex>([] { return SourceIndex(); });
}

}  // namespace ddpdoctor::program
