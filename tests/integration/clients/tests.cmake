# Client libraries in many fibers, each against its real server.
function(sylar_client_test name)
  sylar_test(integration/clients/${name}_test LINKS sylar::sylar sylar::hook ${ARGN})
  sylar_asks_nss_module(integration_clients_${name}_test)
  target_compile_definitions(integration_clients_${name}_test PRIVATE
    SYLAR_SERVERS="${PROJECT_SOURCE_DIR}/tests/integration/servers.py")
endfunction()
sylar_client_test(hiredis PkgConfig::HIREDIS)
sylar_client_test(libpq PkgConfig::LIBPQ)
sylar_client_test(curl PkgConfig::CURL)
pkg_check_modules(MARIADB REQUIRED IMPORTED_TARGET libmariadb)
sylar_client_test(mariadb PkgConfig::MARIADB)
pkg_check_modules(MEMCACHED REQUIRED IMPORTED_TARGET libmemcached)
sylar_client_test(memcached PkgConfig::MEMCACHED)
find_package(OpenSSL REQUIRED)
sylar_client_test(openssl OpenSSL::SSL)
sylar_client_test(beast Boost::headers)

# Client libraries that wait in locks, for threads of their own or for one another.
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka)
sylar_client_test(rdkafka PkgConfig::RDKAFKA)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
sylar_client_test(sqlite PkgConfig::SQLITE)
