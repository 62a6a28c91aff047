#include "sylar/log/log_appender.h"

#include <cerrno>
#include <utility>

#include "sylar/log/log_locks.h"
#include "sylar/log/log_writer.h"
#include "sylar/log/log_yaml.h"
#include "sylar/log/logger.h"

namespace sylar {
namespace {

constexpr auto kFatalPatience = std::chrono::milliseconds(5);

// Waits a moment for a fatal line to be written, because the program may be about to end abruptly.
void write(LogWriter& writer, std::string text, LogLevel::Level level) {
  writer.append(std::move(text));
  if (level >= LogLevel::FATAL) writer.flush(Deadline::after(kFatalPatience));
}

}  // namespace

LogAppender::LogAppender() { LogLocks::get().add(m_mutex); }
LogAppender::~LogAppender() { LogLocks::get().remove(m_mutex); }

void LogAppender::setFormatter(LogFormatter::ptr formatter) {
  MutexType::Lock lock(m_mutex);
  m_hasFormatter = formatter != nullptr;
  m_formatter.swap(formatter);
}

LogFormatter::ptr LogAppender::getFormatter() {
  MutexType::Lock lock(m_mutex);
  return m_formatter;
}

LogFormatter::ptr LogAppender::formatterFor(Logger& logger) {
  const LogFormatter::ptr formatter = getFormatter();
  return formatter != nullptr ? formatter : logger.getFormatter();
}

void LogAppender::inherit(const LogFormatter::ptr& formatter) {
  MutexType::Lock lock(m_mutex);
  if (!m_hasFormatter) m_formatter = formatter;
}

std::string LogAppender::toYaml(const std::string& type, const std::string& file) {
  std::string yaml = "type: " + type + "\n";
  if (!file.empty()) yaml += "file: " + yamlQuoted(file) + "\n";
  if (getLevel() != LogLevel::UNKNOW) yaml += std::string("level: ") + LogLevel::ToString(getLevel()) + "\n";
  MutexType::Lock lock(m_mutex);
  if (m_hasFormatter) yaml += "formatter: " + yamlQuoted(m_formatter->getPattern()) + "\n";
  return yaml;
}

StdoutLogAppender::StdoutLogAppender() : m_writer(LogWriter::toStdout()) {}

void StdoutLogAppender::log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) {
  if (level >= getLevel()) write(*m_writer, formatterFor(*logger)->format(logger, level, event), level);
}

std::string StdoutLogAppender::toYamlString() { return toYaml("StdoutLogAppender", ""); }

FileLogAppender::FileLogAppender(const std::string& filename, LogRotation rotation)
    : m_filename(filename), m_writer(LogWriter::toFile(filename, rotation)) {
  reopen();
}

void FileLogAppender::log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) {
  if (level >= getLevel()) write(*m_writer, formatterFor(*logger)->format(logger, level, event), level);
}

std::string FileLogAppender::toYamlString() { return toYaml("FileLogAppender", m_filename); }

bool FileLogAppender::reopen() {
  const int error = m_writer->reopen();
  if (error != 0) errno = -error;
  return error == 0;
}

uint64_t FileLogAppender::lost() const { return m_writer->lost(); }

}  // namespace sylar
