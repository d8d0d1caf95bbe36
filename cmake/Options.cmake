# Flags for the project's own code, as the target `tp_options`; generated code does not link it.
add_library(tp_options INTERFACE)
target_compile_options(tp_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<BOOL:${TP_WERROR}>:-Werror>)
target_include_directories(tp_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

if(TP_SANITIZE)
  # GCC sees uninitialized values in instrumented code where none are; the release build watches for them.
  target_compile_options(tp_options INTERFACE -Wno-maybe-uninitialized)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TP_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
  # tp-rank is a static C program and stays as it ships.
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fsanitize=${TP_SANITIZE}>)
endif()
if(TP_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--coverage>)
  add_link_options($<$<LINK_LANGUAGE:CXX>:--coverage>)
endif()

# tp_library(NAME SOURCES... DEPS...): a static library of the project's own code.
function(tp_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tp_options ${ARG_DEPS})
endfunction()

# tp_test(NAME LABEL label SOURCES... DEPS... [TIMEOUT s] [FILTER f]): a GoogleTest program, one CTest entry a case that
# the filter lets through.
function(tp_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;FILTER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tp_options ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "${ARG_FILTER}"
    PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
