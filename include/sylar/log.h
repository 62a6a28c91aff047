// The header that a program includes for logging.
//
//   static sylar::Logger::ptr g_logger = SYLAR_LOG_NAME("billing");
//   SYLAR_LOG_INFO(g_logger) << "paid " << amount;
//   SYLAR_LOG_FMT_WARN(g_logger, "%d left", left);
//
// Each macro is one statement. Streamed expressions are evaluated only if the logger's level lets the event through; otherwise
// the macro costs one load and a compare. The expression for the logger is then evaluated twice, so keep the logger in a
// variable: SYLAR_LOG_NAME is a look-up.
//
// Logging works before main and in the destructors of statics. An event is written as a whole, with its control bytes escaped
// (log_formatter.h), and never mixed with another of the same file. Logging does not suspend a fiber, and waits for no device;
// see log_appender.h.
//
// Thread safety: all macros from any thread and any fiber, but not from signal handlers.
#pragma once

#include <ostream>

#include "sylar/log/log_appender.h"
#include "sylar/log/log_define.h"
#include "sylar/log/log_event.h"
#include "sylar/log/log_formatter.h"
#include "sylar/log/log_level.h"
#include "sylar/log/logger.h"

namespace sylar::detail {

/// Makes a stream expression void, with an operator that binds weaker than <<.
struct LogVoid {
  void operator&(const std::ostream&) const {}
};

}  // namespace sylar::detail

#define SYLAR_LOG_EVENT_(logger, level) ::sylar::LogEventWrap(::sylar::LogEvent::make((logger), (level), __FILE__, __LINE__))
#define SYLAR_LOG_DROPS_(logger, level) __builtin_expect((logger)->getLevel() > (level), 1)

#define SYLAR_LOG_LEVEL(logger, level) \
  SYLAR_LOG_DROPS_(logger, level) ? void() : ::sylar::detail::LogVoid() & SYLAR_LOG_EVENT_(logger, level).getSS()
#define SYLAR_LOG_DEBUG(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::DEBUG)
#define SYLAR_LOG_INFO(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::INFO)
#define SYLAR_LOG_NOTICE(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::NOTICE)
#define SYLAR_LOG_WARN(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::WARN)
#define SYLAR_LOG_ERROR(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::ERROR)
#define SYLAR_LOG_CRIT(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::CRIT)
#define SYLAR_LOG_ALERT(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::ALERT)
#define SYLAR_LOG_FATAL(logger) SYLAR_LOG_LEVEL(logger, ::sylar::LogLevel::FATAL)

/// Formats as printf does; the compiler checks the arguments.
#define SYLAR_LOG_FMT_LEVEL(logger, level, ...) \
  (SYLAR_LOG_DROPS_(logger, level) ? void() : SYLAR_LOG_EVENT_(logger, level).getEvent()->format(__VA_ARGS__))
#define SYLAR_LOG_FMT_DEBUG(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::DEBUG, __VA_ARGS__)
#define SYLAR_LOG_FMT_INFO(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::INFO, __VA_ARGS__)
#define SYLAR_LOG_FMT_NOTICE(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::NOTICE, __VA_ARGS__)
#define SYLAR_LOG_FMT_WARN(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::WARN, __VA_ARGS__)
#define SYLAR_LOG_FMT_ERROR(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::ERROR, __VA_ARGS__)
#define SYLAR_LOG_FMT_CRIT(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::CRIT, __VA_ARGS__)
#define SYLAR_LOG_FMT_ALERT(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::ALERT, __VA_ARGS__)
#define SYLAR_LOG_FMT_FATAL(logger, ...) SYLAR_LOG_FMT_LEVEL(logger, ::sylar::LogLevel::FATAL, __VA_ARGS__)

#define SYLAR_LOG_ROOT() ::sylar::LoggerMgr::GetInstance()->getRoot()
#define SYLAR_LOG_NAME(name) ::sylar::LoggerMgr::GetInstance()->getLogger(name)
