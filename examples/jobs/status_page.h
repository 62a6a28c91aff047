// A replica shows the store and all replicas, as JSON and as a page.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs.h"
#include "leadership.h"

namespace jobs {

/// Returns what a replica tells the others of itself. May suspend: no.
nlohmann::json aboutOf(const Jobs& jobs);

/// Asks the store. `members` are those who take part, as far as this replica knows. May suspend: yes.
nlohmann::json statusOf(Jobs& jobs, const std::string& replica, const std::string& store, const Members& members);

std::string pageOf(const nlohmann::json& status);

}  // namespace jobs
