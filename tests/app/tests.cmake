sylar_test(app/application_test LINKS sylar::app sylar::hook)
sylar_test(app/fields_test LINKS sylar::app)
sylar_test(app/listen_address_test LINKS sylar::app)
sylar_test(app/command_line_test LINKS sylar::app)
sylar_test(app/settings_test LINKS sylar::app)
target_compile_definitions(app_settings_test PRIVATE SYLAR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# The demo service as its users see it. A sanitizer's runtime makes system calls of its own.
if(TARGET service)
  set(service_tests broken_folders service)
  if(NOT SYLAR_SANITIZE)
    list(APPEND service_tests idle_service)
  endif()
  foreach(each ${service_tests})
    add_test(NAME Service.${each} COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/${each}_test.py $<TARGET_FILE:service>)
    set_tests_properties(Service.${each} PROPERTIES TIMEOUT 300)
  endforeach()
  set_tests_properties(Service.service PROPERTIES RUN_SERIAL TRUE)  # 1 000 sleepers within 1.5 s
endif()
