#include "command.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace ttlkv {

namespace {

constexpr uint8_t kRead = kReads | kFast, kReadAll = kReads, kWrite = kWrites | kFast;
constexpr uint8_t kGrow = kWrites | kNeedsMemory;

// The arities, flags and keys are those that COMMAND of Redis 7.0 tells.
constexpr std::array kCommands = {
    Command{"append", 3, kGrow | kFast, 1, 1, 1, commands::append},
    Command{"bgsave", -1, kNoFlags, 0, 0, 0, commands::bgsave},
    Command{"client", -2, kNoFlags, 0, 0, 0, commands::client},
    Command{"command", -1, kNoFlags, 0, 0, 0, commands::command},
    Command{"config", -2, kNoFlags, 0, 0, 0, commands::config},
    Command{"dbsize", 1, kRead, 0, 0, 0, commands::dbsize},
    Command{"debug", -2, kNoFlags, 0, 0, 0, commands::debug},
    Command{"decr", 2, kGrow | kFast, 1, 1, 1, commands::decr},
    Command{"decrby", 3, kGrow | kFast, 1, 1, 1, commands::decrby},
    Command{"del", -2, kWrites, 1, -1, 1, commands::del},
    Command{"echo", 2, kFast, 0, 0, 0, commands::echo},
    Command{"exists", -2, kRead, 1, -1, 1, commands::exists},
    Command{"expire", -3, kWrite, 1, 1, 1, commands::expire},
    Command{"expireat", -3, kWrite, 1, 1, 1, commands::expireat},
    Command{"expiretime", 2, kRead, 1, 1, 1, commands::expiretime},
    Command{"flushall", -1, kWrites, 0, 0, 0, commands::flushall},
    Command{"flushdb", -1, kWrites, 0, 0, 0, commands::flushall},
    Command{"function", -2, kNoFlags, 0, 0, 0, commands::function},
    Command{"get", 2, kRead, 1, 1, 1, commands::get},
    Command{"getdel", 2, kWrite, 1, 1, 1, commands::getdel},
    Command{"getex", -2, kWrite, 1, 1, 1, commands::getex},
    Command{"getset", 3, kGrow | kFast, 1, 1, 1, commands::getset},
    Command{"hello", -1, kFast, 0, 0, 0, commands::hello},
    Command{"incr", 2, kGrow | kFast, 1, 1, 1, commands::incr},
    Command{"incrby", 3, kGrow | kFast, 1, 1, 1, commands::incrby},
    Command{"info", -1, kNoFlags, 0, 0, 0, commands::info},
    Command{"keys", 2, kReadAll, 0, 0, 0, commands::keys},
    Command{"lastsave", 1, kFast, 0, 0, 0, commands::lastsave},
    Command{"lpush", -3, kGrow | kFast, 1, 1, 1, commands::lpush},
    Command{"lrange", 4, kReadAll, 1, 1, 1, commands::lrange},
    Command{"mget", -2, kRead, 1, -1, 1, commands::mget},
    Command{"mset", -3, kGrow, 1, -1, 2, commands::mset},
    Command{"persist", 2, kWrite, 1, 1, 1, commands::persist},
    Command{"pexpire", -3, kWrite, 1, 1, 1, commands::pexpire},
    Command{"pexpireat", -3, kWrite, 1, 1, 1, commands::pexpireat},
    Command{"pexpiretime", 2, kRead, 1, 1, 1, commands::pexpiretime},
    Command{"ping", -1, kFast | kPubSub, 0, 0, 0, commands::ping},
    Command{"psetex", 4, kGrow, 1, 1, 1, commands::psetex},
    Command{"psubscribe", -2, kPubSub, 0, 0, 0, commands::psubscribe},
    Command{"pttl", 2, kRead, 1, 1, 1, commands::pttl},
    Command{"publish", 3, kFast, 0, 0, 0, commands::publish},
    Command{"punsubscribe", -1, kPubSub, 0, 0, 0, commands::punsubscribe},
    Command{"quit", -1, kFast | kPubSub, 0, 0, 0, commands::quit},
    Command{"reset", 1, kFast | kPubSub, 0, 0, 0, commands::reset},
    Command{"save", 1, kNoFlags, 0, 0, 0, commands::save},
    Command{"select", 2, kFast, 0, 0, 0, commands::select},
    Command{"set", -3, kGrow, 1, 1, 1, commands::set},
    Command{"setex", 4, kGrow, 1, 1, 1, commands::setex},
    Command{"setnx", 3, kGrow | kFast, 1, 1, 1, commands::setnx},
    Command{"shutdown", -1, kNoFlags, 0, 0, 0, commands::shutdown},
    Command{"strlen", 2, kRead, 1, 1, 1, commands::strlen},
    Command{"subscribe", -2, kPubSub, 0, 0, 0, commands::subscribe},
    Command{"time", 1, kFast, 0, 0, 0, commands::time},
    Command{"touch", -2, kRead, 1, -1, 1, commands::exists},
    Command{"ttl", 2, kRead, 1, 1, 1, commands::ttl},
    Command{"type", 2, kRead, 1, 1, 1, commands::type},
    Command{"unlink", -2, kWrite, 1, -1, 1, commands::del},
    Command{"unsubscribe", -1, kPubSub, 0, 0, 0, commands::unsubscribe},
};

constexpr size_t kLongestName = 12;
static_assert(std::all_of(kCommands.begin(), kCommands.end(), [](const Command& c) { return c.name.size() <= kLongestName; }));

char toLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

const Command* findCommand(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Command*> map;
    for (const Command& command : kCommands) map.emplace(command.name, &command);
    return map;
  }();
  if (name.size() > kLongestName) return nullptr;
  char lower[kLongestName];
  std::transform(name.begin(), name.end(), lower, [](char c) { return toLower(c); });
  const auto found = by_name.find(std::string_view(lower, name.size()));
  return found == by_name.end() ? nullptr : found->second;
}

std::span<const Command> allCommands() { return kCommands; }

bool equalsIgnoringCase(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return toLower(a) == b; });
}

std::string toLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return toLower(c); });
  return lower;
}

void replyWrongArity(std::string& out, std::string_view name) {
  reply::error(out, "ERR wrong number of arguments for '" + std::string(name) + "' command");
}

void replyUnknownSubcommand(Call& call, std::string_view command) {
  reply::error(call.out,
               "ERR unknown subcommand '" + reply::printed(call.args[1], 128) + "'. Try " + std::string(command) + " HELP.");
}

}  // namespace ttlkv
