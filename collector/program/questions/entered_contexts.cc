// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/entered_contexts.h"

#include "collector/program/origin/callees.h"
#include "collector/program/syntax/with_items.h"

namespace ddpdoctor::program {

void each_entered(const Code& code, std::size_t with, const File& file,
                  const std::function<void(Node entered, const Where& where)>& each) {
  for (const Node entered : entered_by(code[with].node)) {
    each(entered, where_of(file, entered));
  }
}

std::vector<FunctionLines> entered_around(const SourceText& text, int line,
                                          const Sources& sources) {
  const Code code(text);
  const std::size_t at = code.at(line);
  if (at == kNone) {
    return {};
  }
  const Files files(text, sources);
  Slicer slicer(files, nullptr);
  std::vector<FunctionLines> out;
  for (const std::size_t header : code.headers_around(at)) {
    if (code.kind(header) != NodeKind::kWith) {
      continue;
    }
    each_entered(code, header, files.file_of(text), [&](Node entered, const Where& where) {
      const Definition made = slicer.class_of_value(entered, where);
      auto all = made.kind == Definition::Kind::kClass ? methods_of(made, "__enter__", files)
                                                       : std::vector<Callee>{};
      if (all.empty() && entered.is(NodeKind::kCall)) {
        all = callees_of(entered, where, slicer);
      }
      for (const Callee& one : all) {
        const Node function = one.function().node;
        if (one.file->path != nullptr) {
          out.push_back(
              {.file = *one.file->path, .first = function.line(), .last = function.last_line()});
        }
      }
    });
  }
  return out;
}

}  // namespace ddpdoctor::program
