#include "sylar/config/config_var.h"

#include "sylar/base/log.h"

namespace sylar {

ConfigVarBase::ConfigVarBase(const std::string& name, const std::string& description)
    : m_name(ToLower(name)), m_description(description) {}

void ConfigVarBase::logFailure(const std::string& what, const std::exception& failure) const {
  log::error("config: {}: {}: {}", m_name, what, detail::reasonOf(failure));
}

}  // namespace sylar
