# A user's project outside the tree, against the installed package, which has sylar-run, too. The sanitizers come with flags that a package does not carry.
if(NOT SYLAR_SANITIZE)
  foreach(kind static shared headers sanitized)
    add_test(NAME Package.${kind}
      COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/package_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/package_${kind} ${kind})
    set_tests_properties(Package.${kind} PROPERTIES TIMEOUT 900)
  endforeach()
  set_tests_properties(Package.static PROPERTIES LABELS nightly)
endif()
