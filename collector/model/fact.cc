// SPDX-License-Identifier: Apache-2.0
// Typed access to a fact's fields: a field of another type counts as absent.
#include "collector/model/job_model.h"

namespace ddpdoctor::model {
namespace {

template <typename T>
const T* field_as(const std::map<std::string, FactValue>& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

std::optional<std::string> Fact::text(const std::string& field) const {
  if (const auto* value = field_as<std::string>(fields, field)) {
    return *value;
  }
  return std::nullopt;
}

std::optional<double> Fact::number(const std::string& field) const {
  if (const auto* whole = field_as<std::int64_t>(fields, field)) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = field_as<double>(fields, field)) {
    return *real;
  }
  return std::nullopt;
}

std::optional<bool> Fact::flag(const std::string& field) const {
  if (const auto* value = field_as<bool>(fields, field)) {
    return *value;
  }
  return std::nullopt;
}

std::vector<std::string> Fact::list(const std::string& field) const {
  if (const auto* value = field_as<std::vector<std::string>>(fields, field)) {
    return *value;
  }
  return {};
}

}  // namespace ddpdoctor::model
