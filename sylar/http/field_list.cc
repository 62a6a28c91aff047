#include "sylar/http/field_list.h"

#include <algorithm>
#include <stdexcept>

#include "sylar/http/char_class.h"
#include "sylar/http/char_run.h"

namespace sylar::http {

bool detail::sameIgnoringCase(const char* a, const char* b, size_t size) {
  return std::equal(a, a + size, b, [](char x, char y) { return x == y || toLower(x) == toLower(y); });
}

bool NameLess::operator()(std::string_view a, std::string_view b) const {
  if (exact) return a < b;
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char x, char y) { return toLower(x) < toLower(y); });
}

void requireToken(std::string_view name, const char* what) {
  if (!allOf<kTokenChar>(name)) throw std::invalid_argument(std::string(what) + ": not a token");
}

void requireOneLine(std::string_view text, const char* what) {
  if (!text.empty() && !allOf<kValueChar>(text)) throw std::invalid_argument(std::string(what) + ": control character in it");
}

std::optional<std::string_view> FieldList::find(std::string_view name) const {
  for (const Span& span : m_spans) {
    if (equalsIgnoreCase(nameOf(span), name)) return valueOf(span);
  }
  return std::nullopt;
}

std::optional<std::string> FieldList::joined(std::string_view name) const {
  std::optional<std::string> all;
  for (const Span& span : m_spans) {
    if (!equalsIgnoreCase(nameOf(span), name)) continue;
    if (all) {
      all->append(equalsIgnoreCase(name, "cookie") ? "; " : ", ").append(valueOf(span));
    } else {
      all.emplace(valueOf(span));
    }
  }
  return all;
}

FieldList::Span FieldList::append(std::string_view name, std::string_view value) {
  requireToken(name, "header name");
  requireOneLine(value, "header value");
  if (m_text.size() > m_compact_at) compact();
  const std::string_view text = trimmed(value);
  const auto at = static_cast<uint32_t>(m_text.size());
  const auto name_size = static_cast<uint32_t>(name.size());
  m_text.append(name).append(text);
  return {at, name_size, at + name_size, static_cast<uint32_t>(text.size())};
}

void FieldList::add(std::string_view name, std::string_view value) { m_spans.push_back(append(name, value)); }

void FieldList::set(std::string_view name, std::string_view value) {
  const Span added = append(name, value);
  const auto same = [&](const Span& span) { return equalsIgnoreCase(nameOf(span), name); };
  auto first = m_spans.begin();
  while (first != m_spans.end() && !same(*first)) ++first;
  if (first == m_spans.end()) {
    m_spans.push_back(added);
  } else {
    *first = added;
    m_spans.erase(std::remove_if(first + 1, m_spans.end(), same), m_spans.end());
  }
}

// Drops the bytes that replaced and removed fields have left behind.
void FieldList::compact() {
  std::string text;
  for (Span& span : m_spans) {
    const Span old = span;
    span.name_at = static_cast<uint32_t>(text.size());
    text.append(nameOf(old));
    span.value_at = static_cast<uint32_t>(text.size());
    text.append(valueOf(old));
  }
  m_text.swap(text);
  m_compact_at = std::max<size_t>(kCompactAt, 2 * m_text.size());
}

bool FieldList::del(std::string_view name) {
  const auto same = [&](const Span& span) { return equalsIgnoreCase(nameOf(span), name); };
  return std::erase_if(m_spans, same) > 0;
}

void FieldList::clear() {
  if (m_text.capacity() > kKept) std::string().swap(m_text);
  m_text.clear();
  m_spans.clear();
}

}  // namespace sylar::http
