#include "outbox.h"

#include <utility>

namespace ttlkv {

Outbox::Outbox(size_t max_bytes, std::function<void()> on_overflow)
    : m_max_bytes(max_bytes), m_on_overflow(std::move(on_overflow)) {}

void Outbox::append(std::string_view bytes) {
  bool overflows = false;
  {
    const sylar::ThreadMutex::Lock lock(m_mutex);
    if (m_closed) return;
    overflows = m_bytes.size() + bytes.size() > m_max_bytes;
    if (overflows) {
      m_closed = true;
      std::string().swap(m_bytes);
    } else {
      m_bytes += bytes;
    }
    m_ready.set();
  }
  if (overflows) m_on_overflow();
}

bool Outbox::take(std::string& bytes) {
  if (!m_ready.wait()) return false;
  const sylar::ThreadMutex::Lock lock(m_mutex);
  bytes = std::exchange(m_bytes, {});
  if (!m_closed) m_ready.reset();
  return !bytes.empty();
}

void Outbox::close() {
  const sylar::ThreadMutex::Lock lock(m_mutex);
  m_closed = true;
  m_ready.set();
}

}  // namespace ttlkv
