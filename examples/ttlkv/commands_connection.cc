// These commands concern the connection itself, or are small things that clients ask a server for.
#include <algorithm>

#include "command.h"
#include "version.h"

namespace ttlkv::commands {

void ping(Call& call) {
  if (call.args.size() > 2) return replyWrongArity(call.out, call.command.name);
  const std::string_view message = call.args.size() == 2 ? call.args[1] : "";
  if (call.session.isSubscribed()) {
    reply::array(call.out, 2);
    reply::bulk(call.out, "pong");
    reply::bulk(call.out, message);
  } else if (call.args.size() == 2) {
    reply::bulk(call.out, message);
  } else {
    reply::simple(call.out, "PONG");
  }
}

void echo(Call& call) { reply::bulk(call.out, call.args[1]); }

void quit(Call& call) {
  reply::ok(call.out);
  call.session.ends = true;
}

void reset(Call& call) {
  call.engine.forget(call.session);
  call.session.name.clear();
  reply::simple(call.out, "RESET");
}

void select(Call& call) {
  const auto database = call.integer(1);
  if (!database) return;
  if (*database != 0) return reply::error(call.out, "ERR DB index is out of range");
  reply::ok(call.out);
}

void hello(Call& call) {
  if (call.args.size() > 1) {
    const auto version = parseInteger(call.args[1]);
    if (!version) return reply::error(call.out, "ERR Protocol version is not an integer or out of range");
    if (*version != 2) return reply::error(call.out, "NOPROTO unsupported protocol version");
  }
  if (call.args.size() > 2) {
    return reply::error(call.out, "ERR Syntax error in HELLO option '" + reply::printed(call.args[2]) + "'");
  }
  reply::array(call.out, 14);
  reply::bulk(call.out, "server");
  reply::bulk(call.out, "redis");
  reply::bulk(call.out, "version");
  reply::bulk(call.out, kRedisVersion);
  reply::bulk(call.out, "proto");
  reply::integer(call.out, 2);
  reply::bulk(call.out, "id");
  reply::integer(call.out, static_cast<int64_t>(call.session.id));
  reply::bulk(call.out, "mode");
  reply::bulk(call.out, "standalone");
  reply::bulk(call.out, "role");
  reply::bulk(call.out, "master");
  reply::bulk(call.out, "modules");
  reply::array(call.out, 0);
}

void client(Call& call) {
  const std::string name = toLower(call.args[1]);
  const size_t count = call.args.size();
  if (name == "id" && count == 2) {
    reply::integer(call.out, static_cast<int64_t>(call.session.id));
  } else if (name == "getname" && count == 2) {
    call.session.name.empty() ? reply::null(call.out) : reply::bulk(call.out, call.session.name);
  } else if (name == "setname" && count == 3) {
    const bool is_plain = std::all_of(call.args[2].begin(), call.args[2].end(), [](char c) { return c >= '!' && c <= '~'; });
    if (!is_plain) {
      return reply::error(call.out, "ERR Client names cannot contain spaces, newlines or special characters.");
    }
    call.session.name = call.args[2];
    reply::ok(call.out);
  } else if (name == "id" || name == "getname" || name == "setname") {
    replyWrongArity(call.out, "client|" + name);
  } else {
    replyUnknownSubcommand(call, "CLIENT");
  }
}

namespace {

void describe(std::string& out, const Command& command) {
  reply::array(out, 10);
  reply::bulk(out, command.name);
  reply::integer(out, command.arity);
  std::string flags;
  size_t count = 0;
  const auto addFlag = [&](uint8_t flag, std::string_view name) {
    if ((command.flags & flag) == 0) return;
    reply::simple(flags, name);
    ++count;
  };
  addFlag(kWrites, "write");
  addFlag(kReads, "readonly");
  addFlag(kNeedsMemory, "denyoom");
  addFlag(kPubSub, "pubsub");
  addFlag(kFast, "fast");
  reply::array(out, count);
  out += flags;
  reply::integer(out, command.first_key);
  reply::integer(out, command.last_key);
  reply::integer(out, command.key_step);
  for (int i = 0; i < 4; ++i) reply::array(out, 0);  // categories, tips, key specifications and subcommands
}

}  // namespace

void command(Call& call) {
  const std::string name = call.args.size() > 1 ? toLower(call.args[1]) : "";
  if (name == "count" && call.args.size() > 2) return replyWrongArity(call.out, "command|count");
  if (name == "count") return reply::integer(call.out, static_cast<int64_t>(allCommands().size()));
  if (name == "docs") return reply::array(call.out, 0);
  if (name.empty() || name == "list") {
    reply::array(call.out, allCommands().size());
    for (const Command& each : allCommands()) name.empty() ? describe(call.out, each) : reply::bulk(call.out, each.name);
    return;
  }
  if (name != "info") return replyUnknownSubcommand(call, "COMMAND");
  reply::array(call.out, call.args.size() - 2);
  for (const std::string_view wanted : call.args.subspan(2)) {
    const Command* const found = findCommand(wanted);
    found != nullptr ? describe(call.out, *found) : reply::null(call.out);
  }
}

}  // namespace ttlkv::commands
