// Converts a struct from and to a YAML map. Its fields are listed once, and are read, written and checked by that list.
//
//   struct WorkerSetting { uint32_t thread_num = 1; ... };
//   template <class Visit> void eachField(WorkerSetting& setting, Visit&& visit) {
//     visit("thread_num", setting.thread_num, inRange(1u, 1024u));
//   }
//   template <> class LexicalCast<std::string, WorkerSetting> : public FieldsFromText<WorkerSetting> {};
//   template <> class LexicalCast<WorkerSetting, std::string> : public FieldsToText<WorkerSetting> {};
//
// A field that is missing in the YAML keeps its default. A key that is not a field is an error that lists the fields. A check
// returns "" for a good value, else the rule ("must not be empty"). It also sees the default of a missing field, and so can
// require the field.
//
// Thread safety: no state.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "sylar/config/config_var.h"
#include "sylar/config/lexical_cast.h"
#include "sylar/config/yaml_node.h"

namespace sylar {

template <class Setting>
class FieldsFromText {
 public:
  Setting operator()(const std::string& text) const { return operator()(parseYaml(text)); }

  Setting operator()(const YamlNode& node) const {
    Setting setting;
    const std::vector<YamlNode>& items = detail::mapItems(node);
    std::string known;
    std::set<std::string> fields;
    eachField(setting, [&](const char* name, auto&&...) {
      fields.insert(name);
      known += (known.empty() ? "" : ", ") + std::string(name);
    });
    for (const YamlNode& item : items) {  // comes first, since a misspelt field is also a missing one
      if (!fields.contains(item.key)) fail(item, item.key, "is unknown here; known are " + known);
    }
    eachField(setting, [&]<class T>(const char* name, T& field, const ConfigCheck<std::type_identity_t<T>>& check = nullptr) {
      const auto item = std::find_if(items.begin(), items.end(), [&](const YamlNode& each) { return each.key == name; });
      if (item != items.end()) field = detail::castItem<LexicalCast<std::string, T>>(*item, std::string(".") + name);
      const std::string rule = check == nullptr ? "" : check(field);
      if (!rule.empty()) fail(item != items.end() ? *item : node, name, rule);
    });
    return setting;
  }

 private:
  [[noreturn]] static void fail(const YamlNode& node, const std::string& field, const std::string& reason) {
    BadValue bad(reason);
    bad.setNode(node);
    bad.prepend('.' + field);
    throw bad;
  }
};

template <class Setting>
class FieldsToText {
 public:
  std::string operator()(const Setting& setting) const { return toYamlText(toNode(setting)); }

  static YamlNode toNode(const Setting& setting) {
    YamlNode node;
    node.kind = YamlNode::Kind::kMap;
    Setting copy = setting;
    eachField(copy, [&](const char* name, auto& field, auto&&...) {
      node.items.push_back(detail::toNode(field));
      node.items.back().key = name;
    });
    return node;
  }
};

}  // namespace sylar
