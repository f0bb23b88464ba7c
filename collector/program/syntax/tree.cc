// SPDX-License-Identifier: Apache-2.0
// The only file that uses tree-sitter. Its parser does not recurse; time and size are limited
// because the text may come from an untrusted recording.
#include "collector/program/syntax/tree.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include <tree_sitter/api.h>

extern "C" const TSLanguage* tree_sitter_python();

namespace ddpdoctor::program {
namespace {

using std::string_view;

constexpr std::size_t kMaxBytes = 8U << 20U;
constexpr std::uint64_t kMaxMicroseconds = 3'000'000;  // 240 kB take 20 ms
constexpr std::size_t kMaxNodes = 4'000'000;

constexpr std::array<std::pair<string_view, NodeKind>, 94> kKinds = {{
    {"ERROR", NodeKind::kError},
    {"comment", NodeKind::kComment},
    {"line_continuation", NodeKind::kComment},
    {"module", NodeKind::kModule},
    {"block", NodeKind::kBlock},
    {"expression_statement", NodeKind::kExpressionStatement},
    {"print_statement", NodeKind::kExpressionStatement},
    {"exec_statement", NodeKind::kExpressionStatement},
    {"return_statement", NodeKind::kReturn},
    {"raise_statement", NodeKind::kRaise},
    {"break_statement", NodeKind::kBreak},
    {"continue_statement", NodeKind::kContinue},
    {"pass_statement", NodeKind::kPass},
    {"assert_statement", NodeKind::kAssert},
    {"delete_statement", NodeKind::kDelete},
    {"global_statement", NodeKind::kGlobal},
    {"nonlocal_statement", NodeKind::kNonlocal},
    {"import_statement", NodeKind::kImport},
    {"import_from_statement", NodeKind::kImportFrom},
    {"future_import_statement", NodeKind::kImportFrom},
    {"type_alias_statement", NodeKind::kTypeAlias},
    {"if_statement", NodeKind::kIf},
    {"elif_clause", NodeKind::kElif},
    {"else_clause", NodeKind::kElse},
    {"for_statement", NodeKind::kFor},
    {"while_statement", NodeKind::kWhile},
    {"try_statement", NodeKind::kTry},
    {"except_clause", NodeKind::kExcept},
    {"except_group_clause", NodeKind::kExcept},
    {"finally_clause", NodeKind::kFinally},
    {"with_statement", NodeKind::kWith},
    {"with_clause", NodeKind::kWithItems},
    {"with_item", NodeKind::kWithItem},
    {"match_statement", NodeKind::kMatch},
    {"case_clause", NodeKind::kCase},
    {"function_definition", NodeKind::kFunction},
    {"class_definition", NodeKind::kClass},
    {"decorated_definition", NodeKind::kDecorated},
    {"decorator", NodeKind::kDecorator},
    {"identifier", NodeKind::kName},
    {"attribute", NodeKind::kAttribute},
    {"subscript", NodeKind::kSubscript},
    {"slice", NodeKind::kSlice},
    {"call", NodeKind::kCall},
    {"argument_list", NodeKind::kArguments},
    {"keyword_argument", NodeKind::kKeywordArgument},
    {"integer", NodeKind::kInteger},
    {"float", NodeKind::kFloat},
    {"string", NodeKind::kString},
    {"concatenated_string", NodeKind::kConcatenatedString},
    {"string_content", NodeKind::kStringContent},
    {"interpolation", NodeKind::kInterpolation},
    {"true", NodeKind::kTrue},
    {"false", NodeKind::kFalse},
    {"none", NodeKind::kNone},
    {"ellipsis", NodeKind::kEllipsis},
    {"tuple", NodeKind::kTuple},
    {"list", NodeKind::kList},
    {"set", NodeKind::kSet},
    {"dictionary", NodeKind::kDictionary},
    {"pair", NodeKind::kPair},
    {"parenthesized_expression", NodeKind::kParenthesized},
    {"binary_operator", NodeKind::kBinary},
    {"unary_operator", NodeKind::kUnary},
    {"not_operator", NodeKind::kNot},
    {"boolean_operator", NodeKind::kBoolean},
    {"comparison_operator", NodeKind::kComparison},
    {"conditional_expression", NodeKind::kConditional},
    {"named_expression", NodeKind::kNamed},
    {"assignment", NodeKind::kAssignment},
    {"augmented_assignment", NodeKind::kAugmentedAssignment},
    {"lambda", NodeKind::kLambda},
    {"list_comprehension", NodeKind::kListComprehension},
    {"set_comprehension", NodeKind::kSetComprehension},
    {"dictionary_comprehension", NodeKind::kDictionaryComprehension},
    {"generator_expression", NodeKind::kGenerator},
    {"for_in_clause", NodeKind::kForIn},
    {"if_clause", NodeKind::kIfClause},
    {"await", NodeKind::kAwait},
    {"yield", NodeKind::kYield},
    {"list_splat", NodeKind::kListSplat},
    {"dictionary_splat", NodeKind::kDictionarySplat},
    {"expression_list", NodeKind::kExpressionList},
    {"dotted_name", NodeKind::kDottedName},
    {"aliased_import", NodeKind::kAliasedImport},
    {"type", NodeKind::kType},
    {"pattern_list", NodeKind::kPatternList},
    {"tuple_pattern", NodeKind::kTuplePattern},
    {"list_pattern", NodeKind::kListPattern},
    {"list_splat_pattern", NodeKind::kListSplatPattern},
    {"dictionary_splat_pattern", NodeKind::kDictionarySplatPattern},
    {"as_pattern", NodeKind::kAsPattern},
    {"as_pattern_target", NodeKind::kAsPatternTarget},
    {"case_pattern", NodeKind::kCasePattern},
}};

constexpr std::array<std::pair<string_view, NodeKind>, 8> kParameterKinds = {{
    {"parameters", NodeKind::kParameters},
    {"lambda_parameters", NodeKind::kLambdaParameters},
    {"default_parameter", NodeKind::kDefaultParameter},
    {"typed_parameter", NodeKind::kTypedParameter},
    {"typed_default_parameter", NodeKind::kTypedDefaultParameter},
    {"positional_separator", NodeKind::kPositionalSeparator},
    {"keyword_separator", NodeKind::kKeywordSeparator},
    {"parenthesized_list_splat", NodeKind::kListSplat},
}};

constexpr std::array<std::pair<string_view, Field>, 27> kFields = {{
    {"alias", Field::kAlias},
    {"alternative", Field::kAlternative},
    {"argument", Field::kArgument},
    {"arguments", Field::kArguments},
    {"attribute", Field::kAttribute},
    {"body", Field::kBody},
    {"cause", Field::kCause},
    {"condition", Field::kCondition},
    {"consequence", Field::kConsequence},
    {"definition", Field::kDefinition},
    {"expression", Field::kExpression},
    {"function", Field::kFunction},
    {"guard", Field::kGuard},
    {"key", Field::kKey},
    {"left", Field::kLeft},
    {"module_name", Field::kModuleName},
    {"name", Field::kName},
    {"object", Field::kObject},
    {"operator", Field::kOperator},
    {"operators", Field::kOperators},
    {"parameters", Field::kParameters},
    {"right", Field::kRight},
    {"subject", Field::kSubject},
    {"subscript", Field::kSubscript},
    {"superclasses", Field::kSuperclasses},
    {"type", Field::kType},
    {"value", Field::kValue},
}};

template <class Table, class Value>
Value looked_up(const Table& table, string_view name, Value otherwise) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  return found == table.end() ? otherwise : found->second;
}

/// The grammar's numbers for our kinds and fields, looked up by name once.
struct Grammar {
  const TSLanguage* language = tree_sitter_python();
  std::vector<NodeKind> kinds;
  std::vector<Field> fields;

  Grammar() {
    for (TSSymbol symbol = 0; symbol < ts_language_symbol_count(language); ++symbol) {
      const string_view name = ts_language_symbol_name(language, symbol);
      const bool named = ts_language_symbol_type(language, symbol) == TSSymbolTypeRegular;
      const NodeKind other = looked_up(kParameterKinds, name, NodeKind::kOther);
      kinds.push_back(named ? looked_up(kKinds, name, other) : NodeKind::kToken);
    }
    fields.push_back(Field::kNone);
    for (TSFieldId field = 1; field <= ts_language_field_count(language); ++field) {
      const string_view name = ts_language_field_name_for_id(language, field);
      fields.push_back(looked_up(kFields, name, Field::kNone));
    }
  }

  [[nodiscard]] NodeKind kind(TSSymbol symbol) const {
    return symbol < kinds.size() ? kinds[symbol] : NodeKind::kError;
  }
};

const Grammar& grammar() {
  static const Grammar kGrammar;
  return kGrammar;
}

using Parser = std::unique_ptr<TSParser, decltype(&ts_parser_delete)>;
using ParsedTree = std::unique_ptr<TSTree, decltype(&ts_tree_delete)>;

Parser new_parser() {
  Parser parser(ts_parser_new(), &ts_parser_delete);
  if (!ts_parser_set_language(parser.get(), grammar().language)) {
    return {nullptr, &ts_parser_delete};
  }
  ts_parser_set_timeout_micros(parser.get(), kMaxMicroseconds);
  return parser;
}

FlatNode flat_node(const TSTreeCursor& cursor) {
  const TSNode node = ts_tree_cursor_current_node(&cursor);
  FlatNode out;
  out.symbol = ts_node_symbol(node);
  out.kind = grammar().kind(out.symbol);
  out.role = grammar().fields[ts_tree_cursor_current_field_id(&cursor)];
  out.begin = ts_node_start_byte(node);
  out.end = ts_node_end_byte(node);
  out.row = ts_node_start_point(node).row;
  const TSPoint last = ts_node_end_point(node);
  // A block that ends with a line break has its end in column 0 of the next row.
  out.last_row = last.column == 0 && last.row > out.row ? last.row - 1 : last.row;
  return out;
}

}  // namespace

Tree::Tree(WholeText text) : text_(std::move(text)) {
  if (text_.buffer.size() <= kMaxBytes) {
    parse();
  }
  if (nodes_.empty()) {
    FlatNode empty;
    empty.kind = NodeKind::kModule;
    empty.last = 1;
    nodes_.push_back(empty);
  }
}

bool Tree::has_errors() const {
  return std::any_of(nodes_.begin() + 1, nodes_.end(), [](const FlatNode& node) {
    const bool missing =
        node.begin == node.end && (node.kind == NodeKind::kToken || node.kind == NodeKind::kName);
    return node.kind == NodeKind::kError || missing;
  });
}

void Tree::parse() {
  // Keeps its memory: a job has many files, and many pieces are parsed separately.
  thread_local const Parser parser = new_parser();
  if (!parser) {
    return;
  }
  ts_parser_reset(parser.get());
  const ParsedTree tree(ts_parser_parse_string(parser.get(), nullptr, text_.buffer.data(),
                                               static_cast<std::uint32_t>(text_.buffer.size())),
                        &ts_tree_delete);
  if (!tree) {
    return;
  }
  const TSNode root = ts_tree_root_node(tree.get());
  nodes_.reserve(std::min<std::size_t>(ts_node_descendant_count(root), kMaxNodes));
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  std::vector<std::uint32_t> open;  // the nodes around the cursor
  bool more = true;
  while (more && nodes_.size() < kMaxNodes) {
    FlatNode node = flat_node(cursor);
    const auto id = static_cast<std::uint32_t>(nodes_.size());
    node.parent = open.empty() ? 0 : open.back();
    node.last = id + 1;
    nodes_.push_back(node);
    if (static_cast<int>(open.size()) < kMaxDepth && ts_tree_cursor_goto_first_child(&cursor)) {
      open.push_back(id);
      continue;
    }
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      if (open.empty() || !ts_tree_cursor_goto_parent(&cursor)) {
        more = false;
        break;
      }
      nodes_[open.back()].last = static_cast<std::uint32_t>(nodes_.size());
      open.pop_back();
    }
  }
  for (const std::uint32_t id : open) {  // cut off at kMaxNodes
    nodes_[id].last = static_cast<std::uint32_t>(nodes_.size());
  }
  ts_tree_cursor_delete(&cursor);
  nodes_.front().kind = NodeKind::kModule;  // even if the whole text is one error
}

}  // namespace ddpdoctor::program

namespace ddpdoctor::program {

std::string_view Node::grammar_name() const {
  return tree_ == nullptr ? std::string_view()
                          : ts_language_symbol_name(grammar().language, tree_->nodes()[id_].symbol);
}

}  // namespace ddpdoctor::program
