#include "sylar/config/yaml_node.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/null.h>

#include <algorithm>

#include "sylar/config/config_error.h"

namespace sylar {
namespace {

/// Lets yaml-cpp choose the style, except for text with control bytes, since it would leave a carriage return unquoted.
void emitText(YAML::Emitter& out, const std::string& text) {
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) { return 0 <= c && c < 0x20; });
  if (!plain) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: out << YAML::Null; break;
    case YamlNode::Kind::kScalar: emitText(out, node.text); break;
    case YamlNode::Kind::kSequence:
      out << YAML::BeginSeq;
      for (const YamlNode& item : node.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    case YamlNode::Kind::kMap:
      out << YAML::BeginMap;
      for (const YamlNode& item : node.items) {
        out << YAML::Key;
        emitText(out, item.key);
        out << YAML::Value;
        emit(out, item);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

YamlNode YamlNode::scalar(std::string text) {
  YamlNode node;
  node.kind = Kind::kScalar;
  node.text = std::move(text);
  return node;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::kNull: return "nothing";
    case Kind::kScalar: return "'" + printable(text) + "'";
    case Kind::kSequence: return "a list";
    case Kind::kMap: return "a map";
  }
  return {};
}

std::string toYamlText(const YamlNode& node) {
  YAML::Emitter out;
  emit(out, node);
  return {out.c_str(), out.size()};
}

void BadValue::setNode(const YamlNode& node) {
  if (m_placed) return;
  m_placed = true;
  m_line = node.kind == YamlNode::Kind::kNull && node.key_line > 0 ? node.key_line : node.line;  // a null is where its key is
  if (node.isScalar()) m_value = printable(node.text);
}

}  // namespace sylar
