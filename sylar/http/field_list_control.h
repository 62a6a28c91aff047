// Internal. Lets a parser fill a FieldList: the list copies the whole text, and its fields are parts of that copy.
#pragma once

#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/http/field_list.h"

namespace sylar::http::detail {

class FieldListControl {
 public:
  /// Copies `text` into the list's block, with no fields yet. Returns a view of the copy.
  static std::string_view adopt(FieldList& list, std::string_view text) {
    list.m_spans.clear();
    list.m_text.clear();
    list.m_text.append(text);
    return list.m_text;
  }

  /// Adds a field whose `name` and `value` are parts of the view that adopt() returned.
  static void add(FieldList& list, std::string_view name, std::string_view value) {
    list.m_spans.push_back({offsetIn(list, name), sizeOf(name), offsetIn(list, value), sizeOf(value)});
  }

  /// Makes the first field of that name show `value`, which is also a part of that view. Returns false if there is no such field.
  static bool replace(FieldList& list, std::string_view name, std::string_view value) {
    for (FieldList::Span& span : list.m_spans) {
      if (!equalsIgnoreCase(list.nameOf(span), name)) continue;
      span.value_at = offsetIn(list, value);
      span.value_size = sizeOf(value);
      return true;
    }
    return false;
  }

 private:
  static uint32_t sizeOf(std::string_view part) { return static_cast<uint32_t>(part.size()); }
  static uint32_t offsetIn(const FieldList& list, std::string_view part) {
    const std::string& text = list.m_text;
    SYLAR_DCHECK(part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
    return static_cast<uint32_t>(part.data() - text.data());
  }
};

}  // namespace sylar::http::detail
