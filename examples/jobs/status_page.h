// What a replica shows of itself and of the store, as JSON and as a page.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs.h"

namespace jobs {

/// Asks the store. May suspend: yes.
nlohmann::json statusOf(Jobs& jobs, const std::string& replica, const std::string& store);

std::string pageOf(const nlohmann::json& status);

}  // namespace jobs
