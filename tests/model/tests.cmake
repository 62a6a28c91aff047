if(SYLAR_SANITIZE)  # a model has one thread, and millions of executions
  return()
endif()

# Millions of executions. Later options win.
set(model_optimised $<IF:$<CONFIG:RelWithDebInfo>,-O3,-O1>)

add_library(model_checker STATIC model/checker.cc)
target_compile_options(model_checker PRIVATE ${model_optimised})
target_link_libraries(model_checker PRIVATE sylar_flags PUBLIC sylar::sched sylar::timer)
add_library(model_program STATIC model/model_check.cc)
target_link_libraries(model_program PRIVATE sylar_flags PUBLIC model_checker)

sylar_test(model/checker_test LINKS model_checker)
target_compile_options(model_checker_test PRIVATE ${model_optimised})

add_executable(model_check model/scenarios.cc model/house.cc model/scenarios_wait.cc model/scenarios_sleep.cc model/scenarios_stop.cc
  model/scenarios_fd.cc model/scenarios_life.cc model/scenarios_timer.cc model/scenarios_serve.cc model/scenarios_core.cc
  model/scenarios_sync.cc model/scenarios_lot.cc model/scenarios_run_queue.cc model/scenarios_transfer.cc
  model/scenarios_lend.cc)
target_compile_options(model_check PRIVATE ${model_optimised})
target_link_libraries(model_check PRIVATE sylar_flags model_program)
set_target_properties(model_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

set_target_properties(model_checker_test model_check PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
# Only code that has not passed before is checked.
set(check_once ${CMAKE_CURRENT_SOURCE_DIR}/model/check_once.sh)

# RG-02, RT-7.1 to RT-7.7: all orders with two preemptions, in both memories. A group that has become a tenth smaller than
# it was has lost something. The largest groups have two tests: memory, names, least number of executions, names that another test has. In
# tso the two of serve/sets_wide are too many: there they are tried at random only. Two others have one preemption there.
foreach(run
    tso:wait:94000 tso:sleep:1860000:sleep/spawned tso:sleep/spawned:1040000:sleep/spawned_and_injected tso:queue:22000:queue/taking_out tso:stop:1820000:stop/offer
    tso:stop/offer:2170000 tso:fd:860000 tso:transfer:3538000 tso:life:72900 tso:timer:33000 tso:serve:2310000:serve/told:serve/sets tso:serve/told:1150000
    tso:serve/sets:2150000:serve/sets_wide tso:core:500
    tso:run:237000 tso:out:326000
    tso:sync:1650000 tso:lend:1400000 tso:lot:2050000:lot/passed_on tso:lot/passed_on:710000
    weak:wait:112000 weak:sleep:172000 weak:queue:8900 weak:stop:2000000 weak:fd:240000 weak:transfer:3653000 weak:life:49900 weak:timer:6160 weak:serve:1460000
    weak:core:500 weak:run:17300 weak:out:80000 weak:lend:1450000 weak:sync:1750000 weak:lot:1200000)
  string(REPLACE ":" ";" run ${run})
  list(POP_FRONT run memory names executions)
  string(REPLACE "/" "_" name ${names})
  set(skipped)
  foreach(skip IN LISTS run)
    list(APPEND skipped --skip ${skip})
  endforeach()
  add_test(NAME Model.${name}.${memory} COMMAND ${check_once} $<TARGET_FILE:model_check> --bound 2 --memory ${memory} --at-least ${executions} ${skipped} ${names})
  set_tests_properties(Model.${name}.${memory} PROPERTIES TIMEOUT 3600)
endforeach()
add_test(NAME Model.large.tso COMMAND ${check_once} $<TARGET_FILE:model_check> --bound 1 --memory tso --at-least 820000 sleep/spawned_and_injected queue/taking_out)
# Two selects that face each other need a third preemption to withdraw for each other.
add_test(NAME Model.facing COMMAND ${check_once} $<TARGET_FILE:model_check> --bound 3 --at-least 240000 sync/selects_that_face)
add_test(NAME Model.RandomRuns COMMAND model_check --random 2000)

# RT-7.8: each seeded defect is found. All of them take a third of the time that a release takes to compile.
set(SYLAR_MUTANTS 0/1 CACHE STRING "Which seeded defects are built: REST/N takes each N-th, from the one with the index REST")
string(REGEX MATCH "^([0-9]+)/([0-9]+)$" given "${SYLAR_MUTANTS}")
set(rest ${CMAKE_MATCH_1})
set(share ${CMAKE_MATCH_2})
if(NOT given OR NOT rest LESS share)
  message(FATAL_ERROR "SYLAR_MUTANTS is ${SYLAR_MUTANTS}, not REST/N with REST < N")
endif()
set(mutants_py ${CMAKE_CURRENT_SOURCE_DIR}/model/mutants.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants_py})
execute_process(COMMAND ${mutants_py} list OUTPUT_VARIABLE mutants OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" " " mutants "${mutants}")
separate_arguments(mutants UNIX_COMMAND "${mutants}")
set(index -1)
foreach(mutant IN LISTS mutants)
  math(EXPR index "${index} + 1")
  math(EXPR left "${index} % ${share}")
  if(NOT left EQUAL rest)
    continue()
  endif()
  string(REPLACE "," ";" mutant "${mutant}")
  list(GET mutant 0 name)
  list(GET mutant 1 file)
  list(GET mutant 2 scenario)
  list(GET mutant 3 memory)
  list(GET mutant 4 bound)
  set(folder ${PROJECT_BINARY_DIR}/mutants/${name})
  file(GLOB original ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/include/${file})
  add_custom_command(OUTPUT ${folder}/${file} COMMAND ${mutants_py} write ${name} ${folder} DEPENDS ${mutants_py} ${original})
  add_executable(mutant_${name} model/mutant.cc ${folder}/${file})
  set_source_files_properties(${folder}/${file} PROPERTIES HEADER_FILE_ONLY ON)  # mutant.cc includes it
  target_include_directories(mutant_${name} BEFORE PRIVATE ${folder})
  string(REGEX REPLACE "/.*" "" group ${scenario})
  string(REPLACE "queue" "sleep" group ${group})
  target_compile_definitions(mutant_${name} PRIVATE MODEL_SCENARIOS=${group}Scenarios
    MODEL_SCENARIOS_FILE="tests/model/scenarios_${group}.cc")
  target_compile_options(mutant_${name} PRIVATE -O1 -g0 -w)
  target_link_libraries(mutant_${name} PRIVATE model_program)
  add_test(NAME Mutant.${name} COMMAND ${check_once} $<TARGET_FILE:mutant_${name}> --expect-failure --bound ${bound} --memory ${memory} ${scenario})
  set_tests_properties(Mutant.${name} PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endforeach()
