// A Command has a name, an arity, and a function that executes it.
//
// To add one, write its function in a commands_*.cc and its line in command.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine.h"
#include "number.h"
#include "reply.h"

namespace ttlkv {

struct Command;

/// One request while it is executed.
struct Call {
  Engine& engine;
  Session& session;
  const Command& command;
  std::span<const std::string_view> args;  // the first is the name of the command
  std::string& out;

  Keyspace& keyspace() const { return engine.keyspace(); }
  /// Returns the argument as a number. If it is none, replies with the error and returns nothing.
  std::optional<int64_t> integer(size_t index) const {
    const auto number = parseInteger(args[index]);
    if (!number) reply::error(out, reply::kNotAnInteger);
    return number;
  }
};

enum CommandFlags : uint8_t {
  kNoFlags = 0,
  kWrites = 1,
  kNeedsMemory = 2,  // refused if memory is short
  kPubSub = 4,       // allowed in a connection that has subscribed
  kReads = 8,
  kFast = 16,
};

struct Command {
  std::string_view name;  // in lower case
  int arity;              // the number of arguments with the name, or -n for at least n
  uint8_t flags;
  int first_key, last_key, key_step;
  void (*execute)(Call& call);
};

/// Returns the command of that name, in whatever case, or null.
const Command* findCommand(std::string_view name);
std::span<const Command> allCommands();

/// Returns whether `text` is `lower_case` but for the case.
bool equalsIgnoringCase(std::string_view text, std::string_view lower_case);
std::string toLower(std::string_view text);

/// Replies that the number of arguments is wrong; `name` is such as "get" or "config|get".
void replyWrongArity(std::string& out, std::string_view name);
/// Replies that the command has no such subcommand; `command` is in upper case.
void replyUnknownSubcommand(Call& call, std::string_view command);

namespace commands {
void append(Call& call);
void bgsave(Call& call);
void client(Call& call);
void command(Call& call);
void config(Call& call);
void dbsize(Call& call);
void debug(Call& call);
void decr(Call& call);
void decrby(Call& call);
void del(Call& call);
void echo(Call& call);
void exists(Call& call);
void expire(Call& call);
void expireat(Call& call);
void expiretime(Call& call);
void flushall(Call& call);
void function(Call& call);
void get(Call& call);
void getdel(Call& call);
void getex(Call& call);
void getset(Call& call);
void hello(Call& call);
void incr(Call& call);
void incrby(Call& call);
void info(Call& call);
void keys(Call& call);
void lastsave(Call& call);
void lpush(Call& call);
void lrange(Call& call);
void mget(Call& call);
void mset(Call& call);
void persist(Call& call);
void pexpire(Call& call);
void pexpireat(Call& call);
void pexpiretime(Call& call);
void ping(Call& call);
void psetex(Call& call);
void psubscribe(Call& call);
void pttl(Call& call);
void publish(Call& call);
void punsubscribe(Call& call);
void quit(Call& call);
void reset(Call& call);
void save(Call& call);
void select(Call& call);
void set(Call& call);
void setex(Call& call);
void setnx(Call& call);
void shutdown(Call& call);
void strlen(Call& call);
void subscribe(Call& call);
void time(Call& call);
void ttl(Call& call);
void type(Call& call);
void unsubscribe(Call& call);
}  // namespace commands

}  // namespace ttlkv
