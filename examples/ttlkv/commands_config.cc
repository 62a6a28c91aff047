// CONFIG GET and CONFIG SET use the names of Redis.
//
// A value that is set lasts until the end of the process, or until the folder of YAML is read again.
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <vector>

#include "command.h"
#include "glob.h"
#include "memory_size.h"
#include "notifications.h"
#include "policies.h"

namespace ttlkv::commands {

namespace {

using Error = std::string_view;  // empty if the value was taken

struct Parameter {
  std::string_view name;
  std::string (*get)(const Engine& engine);
  Error (*set)(Options::Live& live, std::string_view value);
};

Error setMaxMemory(Options::Live& live, std::string_view value) {
  const auto bytes = parseMemorySize(value);
  if (!bytes) return "argument must be a memory value";
  live.max_memory_bytes = *bytes;
  return {};
}

Error setPolicy(Options::Live& live, std::string_view value) {
  const auto victims = parsePolicy(toLower(value));
  if (!victims) return "argument(s) must be one of the following: volatile-lru, allkeys-lru, noeviction";
  live.victims = *victims;
  return {};
}

Error setNotifications(Options::Live& live, std::string_view value) {
  const auto set = parseNotifications(value.substr(0, value.find('\0')));  // as Redis reads it
  if (!set) return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
  live.notifications = *set;
  return {};
}

Error setMaxClients(Options::Live& live, std::string_view value) {
  const auto count = parseInteger(value);
  if (!count) return "argument couldn't be parsed into an integer";
  if (*count < 1 || *count > 4294967295) return "argument must be between 1 and 4294967295 inclusive";
  live.max_clients = static_cast<size_t>(*count);
  return {};
}

Error refuse(Options::Live& /*live*/, std::string_view /*value*/) { return "can't set immutable config"; }

// Clients such as redis-benchmark ask for `save` and `appendonly`, which have the values of a server that does not write behind.
constexpr std::array kParameters = {
    Parameter{"appendonly", [](const Engine&) { return std::string("no"); }, refuse},
    Parameter{"databases", [](const Engine&) { return std::string("1"); }, refuse},
    Parameter{"maxclients", [](const Engine& e) { return std::to_string(e.live().max_clients); }, setMaxClients},
    Parameter{"maxmemory", [](const Engine& e) { return std::to_string(e.live().max_memory_bytes); }, setMaxMemory},
    Parameter{"maxmemory-policy", [](const Engine& e) { return std::string(formatPolicy(e.live().victims)); }, setPolicy},
    Parameter{"notify-keyspace-events", [](const Engine& e) { return formatNotifications(e.live().notifications); },
              setNotifications},
    Parameter{"proto-max-bulk-len", [](const Engine& e) { return std::to_string(e.options().max_bulk_bytes); }, refuse},
    Parameter{"save", [](const Engine&) { return std::string(); }, refuse},
    Parameter{"timeout", [](const Engine& e) { return std::to_string(e.options().idle_timeout_ms / 1000); }, refuse},
};

const Parameter* findParameter(std::string_view name) {
  for (const Parameter& each : kParameters) {
    if (equalsIgnoringCase(name, each.name)) return &each;
  }
  return nullptr;
}

void getParameters(Call& call) {
  std::vector<const Parameter*> found;
  for (const Parameter& each : kParameters) {
    for (const std::string_view pattern : call.args.subspan(2)) {
      if (!globMatches(toLower(pattern), each.name)) continue;
      found.push_back(&each);
      break;
    }
  }
  reply::array(call.out, 2 * found.size());
  for (const Parameter* each : found) {
    reply::bulk(call.out, each->name);
    reply::bulk(call.out, each->get(call.engine));
  }
}

/// Takes all of the values or, if one is wrong, none.
void setParameters(Call& call) {
  if (call.args.size() % 2 != 0) return reply::error(call.out, reply::kSyntaxError);
  Options::Live live = call.engine.live();
  for (size_t i = 2; i < call.args.size(); i += 2) {
    const Parameter* const parameter = findParameter(call.args[i]);
    if (parameter == nullptr) {
      return reply::error(call.out,
                          "ERR Unknown option or number of arguments for CONFIG SET - '" + reply::printed(call.args[i]) + "'");
    }
    if (call.args[i + 1] == parameter->get(call.engine)) continue;
    const Error error = parameter->set(live, call.args[i + 1]);
    if (!error.empty()) {
      return reply::error(call.out, "ERR CONFIG SET failed (possibly related to argument '" + std::string(parameter->name) +
                                        "') - " + std::string(error));
    }
  }
  call.engine.setLive(live);
  reply::ok(call.out);
}

}  // namespace

void config(Call& call) {
  const std::string name = toLower(call.args[1]);
  const size_t count = call.args.size();
  if (name == "get" && count >= 3) return getParameters(call);
  if (name == "set" && count >= 4) return setParameters(call);
  if (name == "resetstat" && count == 2) return reply::ok(call.out);
  if (name == "get" || name == "set" || name == "resetstat") return replyWrongArity(call.out, "config|" + name);
  replyUnknownSubcommand(call, "CONFIG");
}

}  // namespace ttlkv::commands
