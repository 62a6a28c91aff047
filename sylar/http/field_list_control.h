// Internal. Lets a scanner fill a FieldList: with the places of the fields in a text, and with that text.
#pragma once

#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/http/char_class.h"
#include "sylar/http/field_list.h"

namespace sylar::http::detail {

class FieldListControl {
 public:
  /// The text whose parts the fields are.
  static std::string& text(FieldList& list) { return list.m_text; }

  /// Adds the field whose line in `text` is [line, end), with its colon at `colon`. It cannot be read before text() is that text.
  static void add(FieldList& list, std::string_view text, size_t line, size_t colon, size_t end) {
    const std::string_view value = trimmed(text.substr(colon + 1, end - colon - 1));
    list.m_spans.push_back({static_cast<uint32_t>(line), static_cast<uint32_t>(colon - line),
                            static_cast<uint32_t>(value.data() - text.data()), static_cast<uint32_t>(value.size())});
  }

  /// Makes the first field of that name show `value`, which is a part of text(). Returns false if there is no such field.
  static bool replace(FieldList& list, std::string_view name, std::string_view value) {
    const std::string& text = list.m_text;
    SYLAR_DCHECK(value.data() >= text.data() && value.data() + value.size() <= text.data() + text.size());
    for (FieldList::Span& span : list.m_spans) {
      if (!equalsIgnoreCase(list.nameOf(span), name)) continue;
      span.value_at = static_cast<uint32_t>(value.data() - text.data());
      span.value_size = static_cast<uint32_t>(value.size());
      return true;
    }
    return false;
  }
};

}  // namespace sylar::http::detail
