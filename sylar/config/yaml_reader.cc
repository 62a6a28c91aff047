#include "sylar/config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/node/impl.h>
#include <yaml-cpp/node/iterator.h>
#include <yaml-cpp/node/node.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sylar/config/plain_text.h"
#include "sylar/config/tree_builder.h"
#include "sylar/config/yaml_limits.h"
#include "sylar/thread.h"

namespace sylar::detail {
namespace {

int lineOf(const YAML::Mark& mark) { return mark.is_null() ? 0 : mark.line + 1; }

/// The lines of a text, for facts that yaml-cpp does not report.
class Lines {
 public:
  explicit Lines(std::string_view text) {
    while (!text.empty()) {
      const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
      m_lines.push_back(text.substr(0, size));
      text.remove_prefix(size);
    }
  }

  /// Returns true if the line is indented with a tab. A block of text may have such lines, so ask only where a value begins.
  bool hasTab(int line) const {
    const std::string_view text = at(line);
    return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
  }

  /// Returns the line of the null that yaml-cpp saw at `mark`. If nothing is written for it, `mark` is that of the next token.
  int lineOfNull(const YAML::Mark& mark) const {
    int line = lineOf(mark);
    const std::string_view text = at(line);
    const size_t column = std::min(text.size(), static_cast<size_t>(std::max(mark.column, 0)));
    const bool written = column < text.size() && std::string_view("~nN").find(text[column]) != std::string_view::npos;
    if (written || text.substr(0, column).find_last_not_of(kBlank) != std::string_view::npos) return line;
    do {
      --line;
    } while (line > 1 && at(line).find_first_not_of(kBlank) == std::string_view::npos);
    return std::max(line, 1);
  }

  /// Returns true if the value at `mark` is a quoted string that the end of the text cuts off.
  bool isCutOff(const YAML::Mark& mark) const {
    int line = lineOf(mark);
    std::string_view text = at(line);
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(std::max(mark.column, 0))));
    while (text.starts_with('&')) text.remove_prefix(std::min(text.size(), text.find_first_of("\"'|>")));
    if (!text.starts_with('"') && !text.starts_with('\'')) return false;
    const char quote = text.front();
    for (text.remove_prefix(1); line <= static_cast<int>(m_lines.size()); text = at(++line)) {
      for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && quote == '"') {
          ++i;
        } else if (text[i] == quote) {
          if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return false;
          ++i;  // '' stands for one quote
        }
      }
    }
    return true;
  }

 private:
  static constexpr const char* kBlank = " \t\r\n";

  std::string_view at(int line) const {
    return line >= 1 && line <= static_cast<int>(m_lines.size()) ? m_lines[static_cast<size_t>(line) - 1] : std::string_view();
  }

  std::vector<std::string_view> m_lines;
};

/// Translates yaml-cpp's events to those of the builder.
class Events : public YAML::EventHandler {
 public:
  Events(const std::string& text, TreeBuilder& builder) : m_lines(text), m_builder(builder) {}

  /// Reports a mistake in the syntax.
  void syntaxError(const YAML::Exception& error) {
    if (checkTab(lineOf(error.mark))) return;
    m_builder.error(lineOf(error.mark), "", "no valid YAML: " + error.msg);
  }

  /// Must be called after the last document.
  void finish() {
    if (m_lines.isCutOff(m_last_quoted)) m_builder.error(lineOf(m_last_quoted), "", "a quoted string that does not end");
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (m_documents++ > 0) throw Ends{lineOf(mark), "a second document; a file has one, without '---' inside"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    keep(anchor, m_builder.leaf(YamlNode::Kind::kNull, "", m_lines.lineOfNull(mark)));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    if (tag == "!") m_last_quoted = mark;
    keep(anchor, m_builder.leaf(YamlNode::Kind::kScalar, value, check(mark, tag)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = m_anchors.find(anchor);
    if (found == m_anchors.end()) {
      const bool inside = std::find(m_open.begin(), m_open.end(), anchor) != m_open.end();
      throw Ends{lineOf(mark), inside ? "an alias inside of what it stands for; that would never end"
                                      : "an alias of a key; an alias may stand for a value only"};
    }
    m_builder.copy(found->second, check(mark));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    m_builder.begin(YamlNode::Kind::kSequence, check(mark, tag));
    m_open.push_back(anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    m_builder.begin(YamlNode::Kind::kMap, check(mark, tag));
    m_open.push_back(anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  int check(const YAML::Mark& mark, const std::string& tag = "?") {
    const int line = lineOf(mark);
    checkTab(line);
    if (tag != "?" && tag != "!" && !tag.empty()) m_builder.error(line, tag, "tags have no meaning here; leave the tag out");
    return line;
  }

  /// Returns true if the line is indented with a tab, and reports that once per line.
  bool checkTab(int line) {
    if (std::exchange(m_line, line) == line) return m_has_tab;
    m_has_tab = m_lines.hasTab(line);
    if (m_has_tab) m_builder.error(line, "", "a tab in the indentation; indent with spaces");
    return m_has_tab;
  }

  void end() {
    const YAML::anchor_t anchor = m_open.back();
    m_open.pop_back();
    keep(anchor, m_builder.end());
  }

  void keep(YAML::anchor_t anchor, const YamlNode* node) {
    if (anchor == YAML::NullAnchor || node == nullptr) return;
    m_builder.count(extentOf(*node), node->line);
    m_anchors[anchor] = *node;
  }

  const Lines m_lines;
  TreeBuilder& m_builder;
  int m_line = 0;  // the last line that was checked
  bool m_has_tab = false;
  YAML::Mark m_last_quoted = YAML::Mark::null_mark();
  int m_documents = 0;
  std::vector<YAML::anchor_t> m_open;
  std::unordered_map<YAML::anchor_t, YamlNode> m_anchors;
};

void send(const YAML::Node& node, TreeBuilder& to) {
  const int line = lineOf(node.Mark());
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null: to.leaf(YamlNode::Kind::kNull, "", line); break;
    case YAML::NodeType::Scalar: to.leaf(YamlNode::Kind::kScalar, node.Scalar(), line); break;
    case YAML::NodeType::Sequence:
      to.begin(YamlNode::Kind::kSequence, line);
      for (const auto& item : node) send(item, to);
      to.end();
      break;
    case YAML::NodeType::Map:
      to.begin(YamlNode::Kind::kMap, line);
      for (const auto& item : node) {
        send(item.first, to);
        send(item.second, to);
      }
      to.end();
      break;
  }
}

}  // namespace

YamlNode readYaml(const std::string& text, const std::string& file, std::vector<ConfigError>& errors) {
  if (text.size() > YamlLimits::kBytes) {
    errors.push_back({file, 0, "", "", fmt::format("{} bytes; the limit is {}", text.size(), YamlLimits::kBytes)});
    return {};
  }
  if (const TextFlaw flaw = findTextFlaw(text); flaw.line > 0) {
    errors.push_back({file, flaw.line, "", "", flaw.reason});
    return {};
  }
  TreeBuilder builder(file, errors);
  Events events(text, builder);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    events.finish();
    return builder.take();
  } catch (const Ends& end) {
    builder.error(end.line, "", end.reason);
  } catch (const YAML::Exception& syntax) {
    events.syntaxError(syntax);
  }
  return {};
}

YamlNode readYaml(const YAML::Node& root, const std::string& file, std::vector<ConfigError>& errors) {
  TreeBuilder builder(file, errors);
  try {
    send(root, builder);
    return builder.take();
  } catch (const Ends& end) {
    builder.error(end.line, "", end.reason);
  } catch (const YAML::Exception& invalid) {
    builder.error(lineOf(invalid.mark), "", invalid.msg);
  }
  return {};
}

void onThread(const std::function<void()>& work) {
  thread_local bool t_here = false;
  if (t_here) return work();
  std::exception_ptr failure;
  const auto body = [&] {
    t_here = true;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  Thread(body, "config").join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sylar::detail

namespace sylar {

YamlNode parseYaml(const std::string& text) {
  std::vector<ConfigError> errors;
  YamlNode node;
  onThread([&] { node = readYaml(text, "", errors); });
  if (errors.empty()) return node;
  throw BadValue(fmt::format("line {} of the value: {}", errors.front().line, errors.front().reason));
}

}  // namespace sylar
