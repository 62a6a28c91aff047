// These commands concern the server: its time, snapshots and end, and switches for tests of clients.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "command.h"
#include "sylar/log.h"
#include "sylar/sync/blocking.h"

namespace ttlkv::commands {

void time(Call& call) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  reply::array(call.out, 2);
  reply::bulk(call.out, std::to_string(us / 1'000'000));
  reply::bulk(call.out, std::to_string(us % 1'000'000));
}

void save(Call& call) {
  if (call.engine.isSaving()) return reply::error(call.out, "ERR Background save already in progress");
  try {
    Engine& engine = call.engine;
    sylar::blocking([&engine] { engine.save(); });  // the engine outlives all helper threads
    reply::ok(call.out);
  } catch (const std::exception& failure) {
    reply::error(call.out, std::string("ERR ") + failure.what());
  }
}

void bgsave(Call& call) {
  if (call.args.size() > 2 || (call.args.size() == 2 && !equalsIgnoringCase(call.args[1], "schedule"))) {
    return reply::error(call.out, reply::kSyntaxError);
  }
  if (call.engine.isSaving()) return reply::error(call.out, "ERR Background save already in progress");
  try {
    Engine& engine = call.engine;
    sylar::goBlocking([&engine] {
      try {
        engine.save();
      } catch (const std::exception& failure) {
        SYLAR_LOG_ERROR(SYLAR_LOG_NAME("ttlkv")) << "no snapshot was written: " << failure.what();
      }
    });
    reply::simple(call.out, "Background saving started");
  } catch (const std::system_error& failure) {
    reply::error(call.out, std::string("ERR ") + failure.what());
  }
}

void lastsave(Call& call) { reply::integer(call.out, call.engine.last_save_s); }

/// Ends the service as SIGTERM does. The connection is closed without a reply, as that of Redis is.
void shutdown(Call& call) {
  const bool has_mode = call.args.size() == 2;
  const bool no_save = has_mode && equalsIgnoringCase(call.args[1], "nosave");
  if (call.args.size() > 2 || (has_mode && !no_save && !equalsIgnoringCase(call.args[1], "save"))) {
    return reply::error(call.out, reply::kSyntaxError);
  }
  if (no_save) call.engine.saves_at_end = false;
  call.session.ends = true;
  ::kill(::getpid(), SIGTERM);
}

void function(Call& call) {
  const bool flushes = equalsIgnoringCase(call.args[1], "flush");
  if (!flushes) return replyUnknownSubcommand(call, "FUNCTION");
  reply::ok(call.out);  // there are no functions
}

void debug(Call& call) {
  if (call.args.size() == 3 && equalsIgnoringCase(call.args[1], "set-active-expire")) {
    call.engine.expirer().setActive(call.args[2] != "0");
    return reply::ok(call.out);
  }
  reply::error(call.out, "ERR unknown subcommand or wrong number of arguments for '" + reply::printed(call.args[1], 128) +
                             "'. Try DEBUG HELP.");
}

}  // namespace ttlkv::commands
