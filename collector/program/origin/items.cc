// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/items.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collector/program/origin/iterable.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepestItem = 4;

/// Python's classes of mappings: whatever they are made of, iterating goes over their keys.
bool is_mapping_class(std::string_view name) {
  return is_one_of(name, {"dict", "defaultdict", "OrderedDict", "Counter", "UserDict"});
}

/// Python's classes of objects that hold elements.
bool is_container_class(std::string_view name) {
  return is_mapping_class(name) || is_one_of(name, {"list", "set"});
}

/// PyTorch's containers of a model's parts.
bool is_parts_class(std::string_view qualified) {
  return is_one_of(qualified, {"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential",
                               "torch.nn.ParameterList", "torch.nn.ParameterDict"});
}

/// `[]`, `{}`, `list()`, `{k: v for …}`, `collections.defaultdict(list)`: a container built here.
bool is_container(Node value) {
  switch (value.kind()) {
    case NodeKind::kList:
    case NodeKind::kDictionary:
    case NodeKind::kSet:
    case NodeKind::kDictionaryComprehension:
      return true;
    case NodeKind::kCall: {
      const std::string name = dotted_name(value.field(Field::kFunction));
      return is_mapping_class(last_of(name)) ||
             (value.field(Field::kArguments).children().empty() && is_container_class(name));
    }
    default:
      return false;
  }
}

/// `{}`, `dict()`, `{k: v for …}`, `set()`: iterating goes over names, not over batches.
bool is_keyed(Node value) {
  return is_container(value) && !value.is(NodeKind::kList) &&
         dotted_name(value.field(Field::kFunction)) != "list";
}

class Kinds {
 public:
  Kinds(const Files& files, Slicer& slicer) : files_(files), slicer_(slicer) {}

  Items of(Node node, const Where& where, int depth) {
    node = without_parentheses(node);
    if (!node || depth > kDeepestItem) {
      return Items::kUnknown;
    }
    const Definition made = slicer_.class_of_value(node, where);
    if (is_batches(made)) {
      return Items::kBatches;
    }
    if (extends_container(made, files_) ||
        (made.kind == Definition::Kind::kLibrary && is_parts_class(made.qualified))) {
      return Items::kElements;
    }
    if (node.is(NodeKind::kCall)) {
      return of_call(node, where, depth);
    }
    if (node.is(NodeKind::kAttribute) && node.field(Field::kAttribute).text() == "param_groups") {
      return Items::kElements;  // for a torch.optim.Optimizer
    }
    if (node.is(NodeKind::kAttribute) && is_own_dict(node, where)) {
      return Items::kElements;
    }
    if (node.is(NodeKind::kSubscript)) {
      return Items::kUnknown;
    }
    const Definition is = node.is(NodeKind::kName)
                              ? files_.lookup(*where.file, where.scope, node.text())
                              : Definition{};
    return is.kind == Definition::Kind::kVariable ? of_variable(is, depth) : Items::kUnknown;
  }

 private:
  static bool is_batches(const Definition& made) {
    const SourceRow* row =
        made.kind == Definition::Kind::kLibrary ? source_of_name(made.qualified) : nullptr;
    return row != nullptr && row->source == Source::kData;
  }

  /// `self.totals`, for which a method of the class sets a new dict.
  static bool is_own_dict(Node node, const Where& where) {
    const std::size_t type = class_of(where.file->scopes(), where.scope);
    const std::string dotted = dotted_name(node);
    const auto [first, last] =
        where.file->facts->attributes.equal_range(node.field(Field::kAttribute).text());
    return type != kNone && std::any_of(first, last, [&](const auto& one) {
             const Binding& binding = one.second.binding;
             return binding.target == dotted && binding.kind == BindingKind::kAssign &&
                    !binding.item && class_of(where.file->scopes(), one.second.scope) == type &&
                    is_keyed(without_parentheses(binding.value));
           });
  }

  Items of_variable(const Definition& is, int depth) {
    Items found = Items::kUnknown;
    for (const Binding& binding : is.file->facts->of_scope[is.scope]) {
      if (binding.target != is.name || binding.kind != BindingKind::kAssign || binding.item) {
        continue;
      }
      const bool put_together = is_container(without_parentheses(binding.value));
      const Items one = put_together
                            ? Items::kElements
                            : of(binding.value, {.file = is.file, .scope = is.scope}, depth + 1);
      found = found == Items::kUnknown ? one : found;
    }
    return found;
  }

  Items of_call(Node call, const Where& where, int depth) {
    const Node callee = call.field(Field::kFunction);
    const bool method = callee.is(NodeKind::kAttribute);
    const std::string_view name = method ? callee.field(Field::kAttribute).text() : callee.text();
    if (!method && name == "range") {
      return Items::kBatches;
    }
    if (method && gives_elements(name)) {
      return Items::kElements;
    }
    const std::vector<Node> given = arguments_of(call);
    if (passes_on(name) && !given.empty()) {
      for (const Node one : given) {
        if (const Items items = of(one, where, depth + 1); items != Items::kUnknown) {
          return items;
        }
      }
      return Items::kUnknown;
    }
    const Definition is = files_.resolve(*where.file, where.scope, dotted_name(callee));
    const bool generates =
        is.kind == Definition::Kind::kFunction && is.file->scopes()[is.scope].is_generator;
    return generates ? Items::kBatches : Items::kUnknown;
  }

  const Files& files_;
  Slicer& slicer_;
};

/// The names in a target: "k", "v" of `for k, v in …`.
void names_in(Node node, std::vector<std::string>& out) {
  if (node.is(NodeKind::kName)) {
    out.emplace_back(node.text());
  }
  for (const Node child : node.children()) {
    names_in(child, out);
  }
}

/// The name of the iterated object itself: "out" of `sorted(out)`, `out.items()`.
std::string iterated_name(Node over) {
  over = without_parentheses(over);
  for (int depth = 0; over.is(NodeKind::kCall) && depth < kDeepestItem; ++depth) {
    const Node callee = over.field(Field::kFunction);
    const std::vector<Node> given = arguments_of(over);
    if (callee.is(NodeKind::kAttribute) && given.empty()) {
      over = callee.field(Field::kObject);
    } else if (!given.empty()) {
      over = without_parentheses(given.front());
    } else {
      break;
    }
  }
  return dotted_name(over);
}

/// The element, an attribute of it (`p.grad`), or the item for the key (`out[k]`).
bool is_element(Node node, const std::vector<std::string>& names, std::string_view over) {
  node = without_parentheses(node);
  if (node.is(NodeKind::kSubscript)) {
    const auto keys = node.fields(Field::kSubscript);
    return !over.empty() && dotted_name(node.field(Field::kValue)) == over && keys.size() == 1 &&
           is_element(keys.front(), names, {});
  }
  const std::string dotted = dotted_name(node);
  const std::string first = dotted.substr(0, dotted.find('.'));
  return !dotted.empty() && std::find(names.begin(), names.end(), first) != names.end();
}

bool is_collective(const Definition& is, std::string_view callee) {
  const CallRow* row = is.kind == Definition::Kind::kLibrary   ? call_of_name(is.qualified)
                       : is.kind == Definition::Kind::kUnknown ? call_of_attribute(last_of(callee))
                                                               : nullptr;
  return row != nullptr && makes_collective(row->does);
}

/// A call among the nodes passes one of the names to a collective.
bool hands_on(const Files& files, const File& file, std::size_t scope, Node node,
              const std::vector<std::string>& names, std::string_view over, int depth) {
  if (depth > kDeepestItem) {
    return false;
  }
  if (node.is(NodeKind::kCall)) {
    const std::string callee = dotted_name(node.field(Field::kFunction));
    const Definition is = files.resolve(file, scope, callee);
    const std::vector<Node> given = arguments_of(node);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!is_element(given[i], names, over)) {
        continue;
      }
      if (is_collective(is, callee)) {
        return true;
      }
      if (is.kind == Definition::Kind::kFunction) {
        const Scope& function = is.file->scopes()[is.scope];
        if (i < function.parameters.size() &&
            hands_on(files, *is.file, is.scope, function.body,
                     {std::string(function.parameters[i].name)}, {}, depth + 1)) {
          return true;
        }
      }
    }
  }
  const auto children = node.children();
  return std::any_of(children.begin(), children.end(), [&](Node child) {
    return hands_on(files, file, scope, child, names, over, depth);
  });
}

/// `[a, b]`, or a name that only such a list is given and no method may change; the works that
/// batch_isend_irecv() returns for one.
bool is_written_out(const Files& files, Node node, const Where& where, int depth = 0) {
  node = without_parentheses(node);
  if (node.is(NodeKind::kList)) {
    const auto all = node.children();
    return std::none_of(all.begin(), all.end(),
                        [](Node one) { return one.is(NodeKind::kListSplat); });
  }
  if (depth > kDeepestItem) {
    return false;
  }
  if (node.is(NodeKind::kCall)) {
    const std::vector<Node> given = arguments_of(node);
    const Definition is =
        files.resolve(*where.file, where.scope, dotted_name(node.field(Field::kFunction)));
    return is.kind == Definition::Kind::kLibrary && lies_in(is.qualified, "torch.distributed") &&
           last_of(is.qualified) == "batch_isend_irecv" && given.size() == 1 &&
           is_written_out(files, given.front(), where, depth + 1);
  }
  const Definition is =
      node.is(NodeKind::kName) ? files.lookup(*where.file, where.scope, node.text()) : Definition{};
  const std::vector<Binding> none;
  const auto& all =
      is.kind == Definition::Kind::kVariable ? is.file->facts->of_scope[is.scope] : none;
  const Binding* only = nullptr;
  for (const Binding& binding : all) {
    if (may_change(binding, is.name)) {
      if (only != nullptr || binding.kind != BindingKind::kAssign || binding.item ||
          binding.unpacked) {
        return false;
      }
      only = &binding;
    }
  }
  return only != nullptr &&
         is_written_out(files, only->value, {.file = is.file, .scope = is.scope}, depth + 1);
}

}  // namespace

bool extends_container(const Definition& made, const Files& files) {
  const auto all =
      made.kind == Definition::Kind::kClass ? files.bases_of(made) : std::vector<Definition>{};
  return std::any_of(all.begin(), all.end(), [&files](const Definition& one) {
    if (one.kind != Definition::Kind::kClass) {
      return is_container_class(last_of(one.qualified));
    }
    const Scope& scope = one.file->scopes()[one.scope];
    const auto bases = scope.node.field(Field::kSuperclasses).children();
    return std::any_of(bases.begin(), bases.end(), [&](Node base) {
      return base.is(NodeKind::kName) && is_container_class(base.text()) &&
             files.lookup(*one.file, scope.outer, base.text()).kind == Definition::Kind::kUnknown;
    });
  });
}

bool gives_elements(std::string_view method) {
  return is_one_of(method, {"items", "keys", "values", "parameters", "named_parameters", "buffers",
                            "named_buffers", "modules", "named_modules", "children",
                            "named_children", "state_dict"});
}

Items items_of(const SourceText& text, int line, const Sources& sources) {
  const auto of = [](const Files& files, Slicer& slicer, Node iterable, const Where& where) {
    return Kinds(files, slicer).of(iterable, where, 0);
  };
  return about_iterable(text, line, sources, of).value_or(Items::kUnknown);
}

Items items_of(std::string_view iterable, const Asked& asked, const Sources& sources) {
  const auto of = [](const Files& files, Slicer& slicer, Node over, const Where& where) {
    return Kinds(files, slicer).of(over, where, 0);
  };
  return about_expression(iterable, asked, sources, of);
}

bool is_as_long_everywhere(const SourceText& text, int line, const Sources& sources) {
  const auto alike = [](const Files& files, Slicer& slicer, Node iterable, const Where& where) {
    if (is_written_out(files, iterable, where)) {
      return true;
    }
    if (iterated_name(iterable) == "self") {
      return false;  // each rank has an object of its own
    }
    const Origin over = slicer.value(iterable, where);
    return over.source == Source::kUniform && !over.object;
  };
  return about_iterable(text, line, sources, alike).value_or(false);
}

bool reduces_each(const SourceText& text, int loop, int statement, const Sources& sources) {
  const SourceIndex& index = index_of(text);
  const Node header = loop_at(index, loop);
  const std::size_t at = header ? index.statement_at(statement) : kNone;
  if (at == kNone || is_header(index.statements()[at].node.kind())) {
    return false;
  }
  std::vector<std::string> names;
  names_in(header.field(Field::kLeft), names);
  const Files files(text, sources);
  return hands_on(files, files.file_of(text), index.statements()[at].scope,
                  index.statements()[at].node, names, iterated_name(header.field(Field::kRight)),
                  0);
}

}  // namespace ddpdoctor::program
