// The settings `jobs.*` come from the YAML folder.
#pragma once

#include <memory>
#include <string>

#include "jobs.h"

namespace jobs {

/// Returns the present values. Thread safety: any thread.
Options readOptions();
std::string deliverUrl();   ///< "": jobs are logged
std::string replicaName();  ///< host:process, unless it was set
std::string storeName();    ///< memory, redis or postgres

/// Makes the store that was chosen. It connects when it is first used.
std::unique_ptr<Store> makeStore();

}  // namespace jobs
